//! Which users may write to a file or folder.

use rustix::fs::getxattr;
use rustix::process::geteuid;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const ALL_USERS: u32 = 0o002;
const GROUP: u32 = 0o020;
const STICKY: u32 = 0o1000;
const ROOT: u32 = 0;

/// The user that Posse runs as. Besides this user, only root is trusted.
pub(super) struct User {
    id: u32,
    /// The folder with the lists of users and groups.
    lists: PathBuf,
}

impl User {
    /// The user of this process.
    pub(super) fn present() -> Self {
        User { id: geteuid().as_raw(), lists: PathBuf::from("/etc") }
    }

    /// The id of the owner, if that is somebody else.
    pub(super) fn stranger(&self, found: &Metadata) -> Option<u32> {
        Some(found.uid()).filter(|owner| ![self.id, ROOT].contains(owner))
    }

    /// The same for a folder above the database. In a container that does not know the machine's root, the
    /// folders of that root belong to an id that stands for all unknown users.
    pub(super) fn stranger_above(&self, found: &Metadata) -> Option<u32> {
        self.stranger(found).filter(|owner| Some(*owner) != unknown_users())
    }

    /// Who else may write to `path`, in words.
    pub(super) fn writers(&self, path: &Path, found: &Metadata) -> Option<&'static str> {
        if found.mode() & ALL_USERS != 0 {
            return Some("all users");
        }
        if found.mode() & GROUP == 0 {
            return None;
        }
        // The bits of the group are the most that an access list gives.
        if has_access_list(path) {
            return Some("the users of its access list");
        }
        (!self.is_alone_in(found.gid())).then_some("the users of its group")
    }

    /// Who else may rename and remove what is in the folder at `path`, in words.
    pub(super) fn movers(&self, path: &Path, found: &Metadata) -> Option<&'static str> {
        match found.mode() & STICKY {
            // What is in it belongs to this user and root.
            STICKY => None,
            _ => self.writers(path, found),
        }
    }

    /// True for a group that has no member but this user and root.
    fn is_alone_in(&self, group: u32) -> bool {
        let list = |name: &str| std::fs::read_to_string(self.lists.join(name)).unwrap_or_default();
        is_alone_in(group, self.id, &list("passwd"), &list("group"))
    }
}

fn is_alone_in(group: u32, user: u32, users: &str, groups: &str) -> bool {
    let mut trusted = vec!["root"];
    for line in users.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, id, main_group, ..] = fields[..] else { continue };
        match id.parse::<u32>() {
            Ok(id) if id == user || id == ROOT => trusted.push(name),
            _ if main_group.parse() == Ok(group) => return false,
            _ => {}
        }
    }
    let mut is_listed = false;
    for line in groups.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, id, members] = fields[..] else { continue };
        if id.parse() == Ok(group) {
            is_listed = true;
            let mut members = members.split(',').map(str::trim).filter(|name| !name.is_empty());
            if !members.all(|member| trusted.contains(&member)) {
                return false;
            }
        }
    }
    // A directory service gives users a group of their own under the same number.
    is_listed || group == user
}

fn has_access_list(path: &Path) -> bool {
    let mut nothing: [u8; 0] = [];
    getxattr(path, "system.posix_acl_access", &mut nothing).is_ok_and(|length| length > 0)
}

/// The id that stands for all users that this process cannot know, if there are such users.
fn unknown_users() -> Option<u32> {
    let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
    let known = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok());
    if known.sum::<u64>() >= u64::from(u32::MAX) {
        return None;
    }
    std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse().ok()
}

#[cfg(test)]
impl User {
    pub(super) fn with(id: u32, lists: &Path) -> Self {
        User { id, lists: lists.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n\
                         bob:x:1001:1001::/home/bob:/bin/sh\neve:x:1002:1000::/home/eve:/bin/sh\n\
                         joe:x:1003:1003::/home/joe:/bin/sh\n";
    const GROUPS: &str = "root:x:0:\nann:x:1000:\nbob:x:1001:\njoe:x:1003:ann\nours:x:2000:bob,root\n\
                          team:x:2001:ann,bob\nnot a group\n";

    #[test]
    fn a_group_is_the_user_s_own_if_nobody_else_is_in_it() {
        for (group, user, alone) in [
            (1001, 1001, true),
            (2000, 1001, true),
            (0, 1001, true),
            (1000, 1000, false),
            (1003, 1003, false),
            (2001, 1001, false),
            // Groups and users of a directory service.
            (5000, 5000, true),
            (5001, 5000, false),
            (1001, 5000, false),
        ] {
            assert_eq!(is_alone_in(group, user, USERS, GROUPS), alone, "{user} in {group}");
        }
    }
}
