//! `Skill`: loads the instructions of a skill into the conversation.

use super::body;
use super::live::LiveSkills;
use super::scripts;
use crate::tool_facts::{SKILL, ToolFacts, own};
use async_trait::async_trait;
use posse_agent::{Answer, Tool, ToolContext};
use posse_protocol::{Schema, SkillOffer, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// Its description, without the list of skills.
const ABOUT: &str = "Loads a skill: instructions for a kind of task, and files that belong to \
    them. When a task fits a skill's description, load it before you begin, and once only.";

/// The most characters of the list of skills, and of each description if there are too many skills.
const LISTED: usize = 8_000;
const SHORTEST: usize = 30;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::from(json!({
        "type": "object",
        "properties": {
            "skill": {"type": "string", "description": "Which skill"},
            "arguments": {"type": "string", "description": "What the skill is to be used on"},
        },
        "required": ["skill"],
    }))
});

/// True when `tool` is this one, and not a tool of the host with the same name.
pub(crate) fn is(tool: &ToolFacts) -> bool {
    *tool == own(SKILL)
}

/// The tool for one run.
pub(crate) struct SkillTool {
    spec: ToolSpec,
    offers: Arc<[SkillOffer]>,
    /// The current settings: a new denial also applies to runs that began before.
    live: LiveSkills,
}

impl SkillTool {
    /// Creates the tool for a run with `offers`.
    pub(crate) fn new(offers: &[SkillOffer], live: LiveSkills) -> Self {
        let spec = ToolSpec {
            facts: own(SKILL),
            description: format!("{ABOUT}\n\nSkills:\n{}", listed(offers)),
            schema: SCHEMA.clone(),
            idempotent: true,
        };
        SkillTool { spec, offers: offers.into(), live }
    }

    /// Returns the skill that `name` means: by its name, or for a skill of a plugin, by its name
    /// without the plugin.
    fn find(&self, name: &str) -> Result<&SkillOffer, String> {
        let name = name.trim().trim_start_matches('/');
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        let own = |offer: &&SkillOffer| offer.name.split_once(':').is_some_and(|(_, own)| is(own));
        if let Some(offer) = self.offers.iter().find(|offer| is(&offer.name)) {
            return Ok(offer);
        }
        let fitting: Vec<&SkillOffer> = self.offers.iter().filter(own).collect();
        match fitting.as_slice() {
            [one] => Ok(one),
            [] => Err(format!("there is no skill `{}`; there are:\n{}", shown(name), self.names())),
            several => {
                let names: Vec<&str> = several.iter().map(|offer| offer.name.as_str()).collect();
                Err(format!("several skills are called `{name}`: say {}", names.join(" or ")))
            }
        }
    }

    fn names(&self) -> String {
        listed(&self.offers)
    }
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(alias = "name", alias = "command", alias = "skill_name")]
    skill: String,
    #[serde(default, alias = "args")]
    arguments: Value,
}

#[async_trait]
impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: Value, _context: &ToolContext) -> Answer {
        let arguments: Arguments = match serde_json::from_value(input) {
            Ok(arguments) => arguments,
            Err(error) => return refused(&format!("the arguments cannot be used: {error}")),
        };
        let offer = match self.find(&arguments.skill) {
            Ok(offer) => offer.clone(),
            Err(why) => return refused(&why),
        };
        let (live, text) = (self.live.clone(), text(&arguments.arguments));
        let work = move || {
            let catalog = live.current();
            if !catalog.allows(&offer.name) {
                return Err(format!("the settings deny the skill `{}` now", offer.name));
            }
            let now = || catalog.held_back(Path::new(&offer.path));
            match scripts::inert(&offer).or_else(now) {
                Some(why) => Err(format!("the skill `{}` is only listed: {why}", offer.name)),
                None => told(&offer, &text),
            }
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(loaded)) => loaded.into(),
            Ok(Err(why)) => refused(&why),
            Err(_) => refused("it could not be read; go on without it"),
        }
    }
}

fn refused(why: &str) -> Answer {
    ToolOutput::error(format!("no skill was loaded: {why}")).into()
}

/// Returns the skill as a result for the agent, with the scope of its calls.
fn told(offer: &SkillOffer, arguments: &str) -> Result<ToolOutput, String> {
    let SkillOffer { name, path, .. } = offer;
    let folder = PathBuf::from(path);
    let loaded = body::of_folder(&folder)
        .map_err(|why| format!("the skill `{name}` cannot be used: {path}/SKILL.md: {why}"))?;
    let mut text = format!("Skill `{name}`, in the folder {path}.\n");
    let tools = loaded.allowed_tools();
    if !tools.is_empty() {
        let tools = tools.join(", ");
        text.push_str(&format!(
            "Until you are given another task you may call nothing but: {tools}. It grants none of \
             them.\n"
        ));
    }
    text.push('\n');
    text.push_str(&loaded.filled(arguments, &folder));
    text.push_str(&listing(&folder));
    let narrows = (!tools.is_empty()).then(|| tools.to_vec());
    Ok(ToolOutput { narrows, ..ToolOutput::text(text) })
}

/// Lists the other files in the folder of a skill, for the agent.
fn listing(folder: &Path) -> String {
    let files = body::files(folder);
    if files.names.is_empty() {
        return String::new();
    }
    let more = if files.cut { "\n… and more" } else { "" };
    format!(
        "\n\nFiles in {}, to Read when the skill calls for them:\n{}{more}",
        folder.display(),
        files.names.join("\n")
    )
}

/// Returns the arguments as one text, in whichever form the model wrote them.
fn text(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(words) => words.iter().map(text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Lists the skills, one per line. If the list is too long, descriptions are cut; if that is not
/// enough, the last skills are left out and counted.
pub(crate) fn listed(offers: &[SkillOffer]) -> String {
    let line = |offer: &SkillOffer, most: usize| {
        let cut = if offer.description.chars().nth(most).is_some() { "…" } else { "" };
        let description: String = offer.description.chars().take(most).collect();
        format!("- {}: {description}{cut}\n", offer.name)
    };
    let all: usize = offers.iter().map(|offer| line(offer, usize::MAX).len()).sum();
    let names: usize = offers.iter().map(|offer| offer.name.len() + 8).sum();
    let share = LISTED.saturating_sub(names) / offers.len().max(1);
    let most = if all <= LISTED { usize::MAX } else { share.max(SHORTEST) };
    let mut text = String::new();
    for (index, offer) in offers.iter().enumerate() {
        let line = line(offer, most);
        if text.len() + line.len() > LISTED {
            text.push_str(&format!("… and {} more\n", offers.len() - index));
            break;
        }
        text.push_str(&line);
    }
    text.trim_end().to_owned()
}

fn shown(name: &str) -> String {
    name.chars().filter(|char| !char.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use posse_protocol::Extra;

    fn offers(count: usize, description: &str) -> Vec<SkillOffer> {
        let offer = |index: usize| SkillOffer {
            name: format!("skill-{index}"),
            description: description.to_owned(),
            path: "/x".to_owned(),
            untrusted: false,
            extra: Extra::default(),
        };
        (0..count).map(offer).collect()
    }

    #[test]
    fn the_list_of_skills_stays_within_its_bounds() {
        assert_eq!(listed(&offers(2, "does it")), "- skill-0: does it\n- skill-1: does it");
        for count in [1, 10, 50, 200] {
            let text = listed(&offers(count, &"é".repeat(1_000)));
            assert!(text.len() <= LISTED + 40, "{count}: {}", text.len());
            assert!(text.contains("- skill-0: é"), "{text}");
        }
        let text = listed(&offers(50, &"x".repeat(1_000)));
        assert_eq!(text.lines().count(), 50, "all are named while there is room");
        let text = listed(&offers(1_000, &"x".repeat(1_000)));
        assert!(text.lines().last().is_some_and(|line| line.starts_with("… and ")), "{text}");
    }

    #[test]
    fn a_skill_of_a_plugin_is_found_without_it_if_only_one_fits() {
        let mut offers = offers(3, "d");
        offers[1].name = "office:pdf".to_owned();
        let tool = SkillTool::new(&offers, LiveSkills::default());
        assert_eq!(tool.find("/PDF").map(|it| it.name.as_str()), Ok("office:pdf"));
        assert!(tool.find("nothing").is_err_and(|why| why.contains("- skill-0: d")));
        offers[2].name = "other:pdf".to_owned();
        let tool = SkillTool::new(&offers, LiveSkills::default());
        assert!(tool.find("pdf").is_err_and(|why| why.contains("office:pdf or other:pdf")));
    }
}
