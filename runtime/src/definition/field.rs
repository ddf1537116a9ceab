//! The fields of a definition: their names, other spellings, and which have no effect yet.

use posse_protocol::near;

/// A field of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Name,
    Description,
    Prompt,
    Tools,
    DisallowedTools,
    Model,
    Effort,
    MaxTurns,
    PermissionMode,
    Skills,
    McpServers,
    Hooks,
    Memory,
    Background,
    Isolation,
    Color,
    ForkContext,
    InitialPrompt,
    OmitClaudeMd,
    Limits,
    Budget,
    OutputSchema,
    Announce,
    Subagents,
    MaxDepth,
    Agents,
    Network,
    Paths,
    Source,
}

/// The form of a field's value, for reading text that is not valid YAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Running text: the lines after it may belong to it, whatever they look like.
    Prose,
    /// A word, a number or a list of names.
    Words,
    /// A table with keys of its own.
    Table,
}

use Field::*;
use Shape::{Prose, Table, Words};

/// Every field: its name, its other spellings, the form of its value.
const FIELDS: [(Field, &str, &[&str], Shape); 29] = [
    (Name, "name", &["agentType"], Words),
    (Description, "description", &["whenToUse"], Prose),
    (Prompt, "prompt", &["instructions", "systemPrompt"], Prose),
    (Tools, "tools", &["allowedTools", "allowTools"], Words),
    (DisallowedTools, "disallowedTools", &["denyTools", "deniedTools"], Words),
    (Model, "model", &[], Words),
    (Effort, "effort", &[], Words),
    (MaxTurns, "maxTurns", &[], Words),
    (PermissionMode, "permissionMode", &[], Words),
    (Skills, "skills", &[], Words),
    (McpServers, "mcpServers", &[], Table),
    (Hooks, "hooks", &[], Table),
    (Memory, "memory", &[], Words),
    (Background, "background", &[], Words),
    (Isolation, "isolation", &[], Words),
    (Color, "color", &["colour"], Words),
    (ForkContext, "forkContext", &[], Words),
    (InitialPrompt, "initialPrompt", &[], Prose),
    (OmitClaudeMd, "omitClaudeMd", &[], Words),
    (Limits, "limits", &[], Table),
    (Budget, "budget", &[], Table),
    (OutputSchema, "outputSchema", &[], Table),
    (Announce, "announce", &[], Words),
    (Subagents, "subagents", &[], Table),
    (MaxDepth, "maxDepth", &[], Words),
    (Agents, "agents", &[], Words),
    (Network, "network", &[], Words),
    (Paths, "paths", &[], Table),
    (Source, "source", &[], Words),
];

/// Parts and beginnings of keys that are meant to restrict. An unknown key with one of them is an
/// error and not ignored: its author believes that the restriction applies.
const RESTRICTING_PARTS: [&str; 2] = ["tool", "permission"];
const RESTRICTING_BEGINNINGS: [&str; 5] = ["allow", "deny", "disallow", "restrict", "sandbox"];

impl Field {
    /// The field that `key` names, in any case, with its words joined by `-`, `_` or nothing.
    pub(crate) fn of(key: &str) -> Option<Field> {
        let key = plain(key);
        let fits = |name: &str| plain(name) == key;
        let found = FIELDS
            .iter()
            .find(|(_, name, also, _)| fits(name) || also.iter().any(|other| fits(other)));
        found.map(|(field, ..)| *field)
    }

    /// The field that the unknown `key` may be a typo of. Fields that restrict are preferred.
    pub(crate) fn near(key: &str) -> Option<Field> {
        let key = plain(key);
        let names =
            |(field, name, also, _): &(Field, &'static str, &'static [&'static str], Shape)| {
                let all = std::iter::once(name).chain(*also);
                let near = all.map(|name| plain(name)).filter(|name| near::is_near(&key, name));
                near.map(|name| near::distance(&key, &name)).min().map(|far| (far, *field))
            };
        let found = FIELDS.iter().filter_map(names);
        found.min_by_key(|(far, field)| (!field.narrows(), *far)).map(|(_, field)| field)
    }

    /// The name of the field.
    pub(crate) fn name(self) -> &'static str {
        self.row().1
    }

    pub(crate) fn shape(self) -> Shape {
        self.row().3
    }

    /// True when the field has no effect yet.
    pub(crate) fn is_not_in_force(self) -> bool {
        matches!(self, Hooks | Memory)
    }

    /// True when the field restricts an agent. Such a field is found even in an unusual place.
    pub(crate) fn narrows(self) -> bool {
        matches!(
            self,
            Tools
                | DisallowedTools
                | PermissionMode
                | MaxTurns
                | Limits
                | Budget
                | MaxDepth
                | Agents
                | Subagents
                | Network
                | Paths
        )
    }

    fn row(self) -> &'static (Field, &'static str, &'static [&'static str], Shape) {
        // The table is in the order of the variants; a test checks this.
        &FIELDS[self as usize]
    }
}

/// True when the unknown `key` looks as if it restricted something.
pub(crate) fn seems_to_restrict(key: &str) -> bool {
    let key = plain(key);
    RESTRICTING_PARTS.iter().any(|part| key.contains(part))
        || RESTRICTING_BEGINNINGS.iter().any(|beginning| key.starts_with(beginning))
}

fn plain(key: &str) -> String {
    key.chars().filter(|char| !matches!(char, '-' | '_')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_name_and_only_once() {
        for (index, (field, name, also, _)) in FIELDS.iter().enumerate() {
            assert_eq!(*field as usize, index, "{name}");
            assert_eq!(Field::of(name), Some(*field));
            for other in *also {
                assert_eq!(Field::of(other), Some(*field));
            }
        }
    }

    #[test]
    fn other_spellings_of_a_name_mean_the_same_field() {
        for key in ["disallowed_tools", "disallowed-tools", "DisallowedTools", "disallowedtools"] {
            assert_eq!(Field::of(key), Some(DisallowedTools), "{key}");
        }
        assert_eq!(Field::of("allowed-tools"), Some(Tools));
        assert_eq!(Field::of("version"), None);
        assert!(seems_to_restrict("tool") && seems_to_restrict("deny-list"));
        assert!(!seems_to_restrict("shallow") && !seems_to_restrict("user"));
    }

    #[test]
    fn a_slip_of_the_pen_means_the_field_that_is_nearest_one_that_narrows_first() {
        for (key, field) in [
            ("tols", Tools),
            ("toools", Tools),
            ("otols", Tools),
            ("dissalowed-tools", DisallowedTools),
            ("permisionMode", PermissionMode),
            ("netwrok", Network),
            ("subagent", Subagents),
            ("maxTurn", MaxTurns),
            ("descripton", Description),
            ("modle", Model),
        ] {
            assert_eq!(Field::near(key), Some(field), "{key}");
        }
        for key in ["version", "author", "license", "tags", "goals", "metadata"] {
            assert_eq!(Field::near(key), None, "{key}");
        }
    }
}
