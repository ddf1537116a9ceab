//! Tools as a provider wants them, written once for all requests that offer the same: they are most
//! of a short request, and a thousand runs of one agent offer the same ones.

use posse_protocol::ToolSpec;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::{Arc, Mutex, PoisonError};

/// As many sets of tools are kept. Agents that take turns have a few between them.
const KEPT: usize = 8;

/// Sets of tools that were written before, for one wire. What was last needed comes first.
#[derive(Debug, Default)]
pub struct Written(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    tools: Arc<[ToolSpec]>,
    text: Arc<RawValue>,
}

impl Written {
    /// `form`, which is how `tools` are written.
    pub(super) fn get(
        &self,
        tools: &Arc<[ToolSpec]>,
        form: &impl Serialize,
    ) -> Result<Arc<RawValue>, serde_json::Error> {
        let same = |it: &Entry| Arc::ptr_eq(&it.tools, tools) || it.tools == *tools;
        {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = kept.iter().position(same) {
                kept[..=place].rotate_right(1);
                return Ok(kept[0].text.clone());
            }
        }
        let text: Arc<RawValue> = to_raw_value(form)?.into();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(KEPT - 1);
        kept.insert(0, Entry { tools: tools.clone(), text: text.clone() });
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posse_protocol::{Effect, Schema};

    fn tools(name: &str) -> Arc<[ToolSpec]> {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: "Does it.".to_owned(),
            schema: Schema::from(serde_json::Value::Null),
            effect: Effect::Read,
            idempotent: true,
        };
        Arc::new([spec])
    }

    #[test]
    fn tools_that_are_alike_are_written_once() -> Result<(), serde_json::Error> {
        let written = Written::default();
        let first = written.get(&tools("one"), &["one"])?;
        assert_eq!(first.get(), r#"["one"]"#);
        assert!(Arc::ptr_eq(&first, &written.get(&tools("one"), &"not written again")?));
        assert_eq!(written.get(&tools("two"), &["two"])?.get(), r#"["two"]"#);
        Ok(())
    }

    #[test]
    fn those_that_were_not_needed_for_long_are_forgotten() -> Result<(), serde_json::Error> {
        let written = Written::default();
        let first = written.get(&tools("first"), &0)?;
        for number in 1..KEPT {
            written.get(&tools(&number.to_string()), &number)?;
            assert!(Arc::ptr_eq(&first, &written.get(&tools("first"), &0)?), "{number}");
        }
        for number in 0..KEPT {
            written.get(&tools(&format!("more {number}")), &number)?;
        }
        assert!(!Arc::ptr_eq(&first, &written.get(&tools("first"), &0)?));
        Ok(())
    }
}
