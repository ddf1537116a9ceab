//! Folders that are trusted, and what that changes for the agents they bring along.

use crate::catalog::{Place, found, problems};
use posse::agents::Level;
use posse::trust::{Act, FilesToTrust, TrustLog, TrustStatus, TrustedFolders};
use posse::{AgentCatalog, LiveCatalog};
use posse_protocol::Usd;

/// A place whose user trusts what the log there says.
fn place() -> (Place, TrustLog) {
    let mut place = Place::new();
    let log = place.at("state/trust.jsonl");
    place.sources.settings.trust = TrustedFolders::of_log(&log);
    (place, TrustLog::at(log))
}

fn trust(place: &Place, log: &TrustLog, folder: &str) {
    let folder = place.at(folder).canonicalize().unwrap();
    let brought = FilesToTrust::by(&folder).unwrap().unwrap();
    log.record(Act::Trusted, &folder, &brought.digest, &[]).unwrap();
}

fn tools(catalog: &AgentCatalog, agent: &str) -> Vec<String> {
    found(catalog, agent).rights.tools.unwrap_or_default()
}

#[test]
fn a_trusted_folder_s_agents_have_what_they_define_until_the_next_change() {
    let (place, log) = place();
    place.define("repo/.posse/agents/doer.md", "tools: Read, Bash, Write");
    place.define("repo/work/.claude/agents/near.md", "tools: Read, Edit");
    let live = LiveCatalog::load(place.sources.clone());
    assert_eq!(tools(&live.current(), "doer"), ["Read"]);
    trust(&place, &log, "repo");
    let catalog = live.refresh();
    assert_eq!(tools(&catalog, "doer"), ["Read", "Bash", "Write"]);
    assert_eq!(tools(&catalog, "near"), ["Read"], "each folder is trusted for itself");
    let standing = |catalog: &AgentCatalog, agent: &str| {
        catalog.entry(&crate::catalog::name(agent)).unwrap().standing.clone().unwrap()
    };
    assert_eq!(standing(&catalog, "doer"), TrustStatus::Trusted);
    assert_eq!(standing(&catalog, "near"), TrustStatus::Unknown);

    place.write("repo/.claude/skills/x/run.sh", "#!/bin/sh\n");
    let catalog = live.refresh();
    assert_eq!(tools(&catalog, "doer"), ["Read"], "something else was added");
    assert_eq!(standing(&catalog, "doer"), TrustStatus::Changed);
    let notes = problems(&catalog, Level::Note).join("\n");
    assert!(notes.contains("changed since you trusted the folder"), "{notes}");
    trust(&place, &log, "repo");
    assert_eq!(tools(&live.refresh(), "doer"), ["Read", "Bash", "Write"]);
}

#[test]
fn a_trusted_folder_is_still_within_the_user_s_limits_and_widens_no_agent_of_others() {
    let (place, log) = place();
    place.write("home/.config/posse/config.toml", "[limits]\ncost = 2.0\n");
    place.define("repo/work/.posse/agents/p.md", "limits: {cost: 9}\ntools: Bash");
    place.write("repo/work/posse.toml", "[agents.explore]\ntools = [\"Bash\", \"Read\"]\n");
    trust(&place, &log, "repo/work");
    let catalog = place.load();
    assert_eq!(found(&catalog, "p").limits.cost, Some(Usd::from_dollars(2.0)));
    assert_eq!(tools(&catalog, "p"), ["Bash"]);
    assert_eq!(tools(&catalog, "explore"), ["Read"], "no more than it had");
}

#[test]
fn a_folder_that_was_moved_or_copied_is_a_stranger() {
    let (mut place, log) = place();
    place.define("repo/work/.posse/agents/doer.md", "tools: Read, Bash");
    trust(&place, &log, "repo/work");
    assert_eq!(tools(&place.load(), "doer"), ["Read", "Bash"]);
    std::fs::rename(place.at("repo/work"), place.at("repo/elsewhere")).unwrap();
    place.sources.working_folder = Some(place.at("repo/elsewhere"));
    assert_eq!(tools(&place.load(), "doer"), ["Read"]);
}
