//! Which skills runs have, according to settings files. Each file can only make the lists stricter.

use super::Setting;
use super::table::settings;
use posse_protocol::SkillRules;
use std::path::PathBuf;

settings! {
    /// Which skills runs have, and where each value came from.
    pub struct SkillSettings, "skills.", from struct FileSkills {
        /// Whether runs start with the skills of their parent (a root: with all skills), unless their
        /// caller says otherwise.
        inherit: Setting<bool> = true, Later, User;
        /// Further folders of skills. A relative path counts from the file's folder.
        extra_dirs: Setting<Vec<PathBuf>> = Vec::new(), Later, User;
        /// Names of the skills that runs may have; `*` in a name matches any text. A skill must be in
        /// the lists of all files.
        allow: Vec<Setting<Vec<String>>> => "all", AllAsOne, Anyone;
        /// Names of skills that no run may have, whatever else allows them.
        deny: Vec<Setting<Vec<String>>>, AllAsOne, Anyone;
    }
}

impl SkillSettings {
    /// The lists as rules. All of them apply.
    pub fn rules(&self) -> Vec<SkillRules> {
        let allow = self
            .allow
            .iter()
            .map(|names| SkillRules { allow: Some(names.value.clone()), ..SkillRules::default() });
        let deny = self
            .deny
            .iter()
            .map(|names| SkillRules { deny: names.value.clone(), ..SkillRules::default() });
        allow.chain(deny).collect()
    }
}
