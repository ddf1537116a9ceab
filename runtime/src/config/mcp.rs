//! MCP servers of settings files. Only the user's file can have them: a project has `.mcp.json`, which needs trust.

use super::Setting;
use super::table::{Effective, Layer, Layered, Row};
use crate::mcp_settings::{FileServer, ServerSettings};
use serde_json::json;
use std::collections::BTreeMap;

impl Layered for Vec<Setting<ServerSettings>> {
    type Written = BTreeMap<String, FileServer>;

    const FORM: &'static str = "[{}.NAME]";

    fn overlay(&mut self, written: Self::Written, layer: &mut Layer<'_>) -> Result<(), String> {
        for (name, server) in written {
            self.push(layer.set(ServerSettings::read(&name, server)?));
        }
        Ok(())
    }

    fn show(&self, row: &Row, shown: &mut Vec<Effective>) {
        shown.extend(self.iter().map(|Setting { value, origin }| {
            origin.effective(format!("{}.{}", row.key, value.name), json!(value.command_line()))
        }));
    }

    fn is_set(written: &Self::Written) -> bool {
        !written.is_empty()
    }
}
