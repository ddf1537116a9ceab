//! `posse doctor`: shows which sandboxes this machine has, what is missing, and whether they hold.
//! Also repairs the database.

mod database;

use super::Common;
use crate::args::DoctorOptions;
use crate::environment::Environment;
use crate::exit::{Code, Failure};
use crate::print;
use posse::confine::{Backend, CommandLimits, Confinement, keeps_moves, landlock_version};
use posse::launch::Launcher;
use posse::protocol::{Limit, Profile};
use posse_probe::{Held, Probed, probe};
use serde_json::{Value, json};

/// The sandboxes that are probed.
const PROBED: [(Backend, Profile); 3] = [
    (Backend::Bubblewrap, Profile::ReadOnly),
    (Backend::Bubblewrap, Profile::WorkspaceWrite),
    (Backend::Landlock, Profile::ReadOnly),
];

/// Known gaps, on every machine.
const OPEN: [&str; 4] = [
    "Posse sets aside harmful git files in repositories below the workspace only when the command has \
     ended.",
    "Posse removes .git/commondir and .git/config.worktree only when the command has ended.",
    "Posse does not count memfd memory. If the machine runs out of memory, the kernel kills the command \
     first.",
    "Commands can change files that your own tools run (Makefile, build.rs, package.json). Git itself runs \
     no hook, filter, pager or monitor that an agent wrote. What your own hooks start in turn is \
     protected only as far as Posse recognizes it.",
];
/// The first version of Landlock that confines signals.
const SCOPED: i64 = 6;

pub async fn run(common: &Common, options: &DoctorOptions) -> Result<Code, Failure> {
    let launcher = common.launcher.clone();
    let launcher = launcher.with_environment(Environment::for_processes(&[]));
    match options {
        DoctorOptions { rebuild: true, .. } => database::rebuild(common).await,
        DoctorOptions { restore: Some(backup), .. } => database::restore(common, backup).await,
        DoctorOptions { sandbox: true, .. } => sandbox(common, &launcher).await,
        _ => {
            let why_root = match (super::folder(None), common.database()) {
                (Ok(folder), Ok(database)) => {
                    let mut scratches = database.path().as_os_str().to_owned();
                    scratches.push("-scratch");
                    launcher.why_root(&folder, scratches.as_ref()).await
                }
                _ => None,
            };
            tell(common, &launcher, why_root.as_deref())
        }
    }
}

/// Shows which back end serves which profile, and what does not work.
fn tell(common: &Common, launcher: &Launcher, why_root: Option<&str>) -> Result<Code, Failure> {
    let serving = [Profile::ReadOnly, Profile::WorkspaceWrite].map(|profile| {
        let confinement = Confinement { profile, ..Confinement::default() };
        (profile, launcher.backend(&confinement).map_err(|error| error.to_string()))
    });
    let working = Backend::ALL.map(|backend| (backend, launcher.check(backend)));
    let landlock = landlock_version();
    let open = open_holes(landlock, why_root);
    // A problem with the folder must not hide the rest.
    let claude = super::folder(None).and_then(|folder| {
        let settings = common.rule_files().claude(&folder)?;
        let rules = settings.iter().map(|it| it.deny.len() + it.ask.len()).sum::<usize>();
        Ok((rules, common.unused(&folder)?))
    });
    let claude = claude.map_err(|failure| crate::exit::plain(&failure.message));
    let CommandLimits { memory_bytes, processes, file_bytes, disk_bytes, open_files } =
        CommandLimits::usual();
    if common.global.json {
        let pair = |name: String, result: Result<String, String>| match result {
            Ok(value) => json!({"name": name, "value": value, "problem": null}),
            Err(problem) => json!({"name": name, "value": null, "problem": problem}),
        };
        let profiles: Vec<Value> = serving
            .into_iter()
            .map(|(profile, by)| pair(profile.to_string(), by.map(|by| by.to_string())))
            .collect();
        let backends: Vec<Value> = working
            .into_iter()
            .map(|(backend, works)| pair(backend.to_string(), works.map(|()| "works".into())))
            .collect();
        print::json(&json!({
            "profiles": profiles,
            "backends": backends,
            "landlock_version": landlock,
            "limits": CommandLimits::usual(),
            "open": open,
            "claude": match &claude {
                Ok((rules, unused)) => json!({"rules": rules, "unused": unused}),
                Err(problem) => json!({"problem": problem}),
            },
        }))?;
        return Ok(Code::Done);
    }
    print::line("Commands of agents are confined by:")?;
    for (profile, by) in &serving {
        match by {
            Ok(by) => print::line(format!("  {:<16} {by}", profile.as_str()))?,
            Err(problem) => print::line(format!("  {:<16} NO SHELL: {problem}", profile.as_str()))?,
        }
    }
    print::line("\nBack ends:")?;
    for (backend, works) in &working {
        let works = works.as_ref().map_or_else(String::as_str, |()| "works");
        print::line(format!("  {:<16} {works}", backend.as_str()))?;
    }
    let version = if landlock == 0 { "not in this kernel".into() } else { landlock.to_string() };
    print::line(format!("  {:<16} {version}", "Landlock version"))?;
    if working[0].1.is_err() {
        print::line(
            "\nInstall bubblewrap (Debian, Ubuntu: `apt install bubblewrap`). If it is installed, \
             user namespaces are forbidden here: by the kernel (user.max_user_namespaces), by \
             AppArmor, or by a container.",
        )?;
    }
    print::line(format!(
        "\nEach command may use {} of memory and {processes} processes, write files of up to {} \
         and {} in all, and have {open_files} files open. Posse checks memory and processes ten \
         times a second.",
        Limit::WrittenBytes.amount(memory_bytes),
        Limit::WrittenBytes.amount(file_bytes),
        Limit::WrittenBytes.amount(disk_bytes),
    ))?;
    print::line("\nKnown gaps:")?;
    for hole in open {
        print::line(format!("  - {hole}"))?;
    }
    print::line("\nClaude Code's settings for this folder:")?;
    match claude {
        Ok((rules, unused)) => {
            let rules = crate::format::count(rules as u64, "rule");
            print::line(format!("  {rules} from the deny and ask lists in effect"))?;
            unused.map_or(Ok(()), |unused| print::line(format!("  {unused}")))?;
        }
        Err(problem) => print::line(format!("  NO RUN CAN START HERE: {problem}"))?,
    }
    print::line("\n`posse doctor --sandbox` tries to break out.")?;
    Ok(Code::Done)
}

fn open_holes(landlock: i64, why_root: Option<&str>) -> Vec<String> {
    let mut open: Vec<String> = OPEN.map(str::to_owned).to_vec();
    if let Some(why) = why_root {
        open.push(format!(
            "Posse runs as root, and so do commands in this folder, because {why}. They can read what \
             only root can read outside of /etc, /root and /home. Run Posse as an ordinary user."
        ));
    }
    if !keeps_moves() {
        let fifos = "With bubblewrap, commands can write to every FIFO that they can see";
        open.push(format!("{fifos}; Landlock version 2 prevents this."));
    }
    if landlock < SCOPED {
        let signals =
            "With Landlock, commands can send signals to other processes of the same user";
        open.push(format!("{signals}; Landlock version 6 prevents this."));
    }
    open
}

/// Runs the hostile probes.
async fn sandbox(common: &Common, launcher: &Launcher) -> Result<Code, Failure> {
    let mut columns: Vec<Result<Probed, (Backend, Profile, String)>> = Vec::new();
    for (backend, profile) in PROBED {
        let launcher = launcher.clone().with_backends(&[backend]);
        let probed = probe(&launcher, profile).await;
        columns.push(probed.map_err(|error| (backend, profile, error.to_string())));
    }
    let broken = columns.iter().flatten().any(|probed| probed.succeeded().count() > 0);
    match common.global.json {
        true => print::json(&columns_as_json(&columns))?,
        false => table(&columns)?,
    }
    Ok(if broken { Code::Failed } else { Code::Done })
}

type Column = Result<Probed, (Backend, Profile, String)>;

fn columns_as_json(columns: &[Column]) -> Vec<Value> {
    let column = |column: &Column| match column {
        Ok(probed) => json!({
            "backend": probed.backend,
            "profile": probed.profile,
            "succeeded": probed.succeeded().count(),
            "of": probed.probes.len(),
            "probes": probed.probes,
        }),
        Err((backend, profile, problem)) => {
            json!({"backend": backend, "profile": profile, "problem": problem})
        }
    };
    columns.iter().map(column).collect()
}

fn table(columns: &[Column]) -> Result<(), Failure> {
    let probed: Vec<&Probed> = columns.iter().flatten().collect();
    // The workspace-write profile has more probes than the others.
    let longest = probed.iter().max_by_key(|probed| probed.probes.len());
    let width = 46;
    let heading =
        |probed: &&Probed| format!("{:>28}", format!("{} {}", probed.backend, probed.profile));
    let headings: String = probed.iter().map(heading).collect();
    print::line(format!("{:<width$}{headings}", "hostile probe"))?;
    for row in longest.iter().flat_map(|probed| &probed.probes) {
        let cell = |probed: &&Probed| {
            let same = probed.probes.iter().find(|probe| probe.name == row.name);
            let word = match same.map(|probe| probe.held) {
                Some(Held::Denied) => "denied",
                Some(Held::Private) => "own memory only",
                Some(Held::Undone) => "undone afterwards",
                Some(Held::Succeeded) => "SUCCEEDED",
                Some(Held::Untried) => "not tried",
                None => "",
            };
            format!("{word:>28}")
        };
        let cells: String = probed.iter().map(cell).collect();
        print::line(format!("{:<width$}{cells}", row.name))?;
    }
    let user = if posse::confine::is_root() { "root" } else { "an ordinary user" };
    print::line(format!("\nHostile probes that succeed, as {user}:"))?;
    for column in columns {
        match column {
            Ok(probed) => {
                let (count, all) = (probed.succeeded().count(), probed.probes.len());
                print::line(format!("  {} {}: {count} of {all}", probed.backend, probed.profile))?;
            }
            Err((backend, profile, problem)) => {
                print::line(format!("  {backend} {profile}: not probed: {problem}"))?;
            }
        }
    }
    print::line("\nAttempts that change only the command's own memory do not count.")
}
