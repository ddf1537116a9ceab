//! Which users may write to a file or folder.

use rustix::fs::getxattr;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const ALL_USERS: u32 = 0o002;
const GROUP: u32 = 0o020;
const STICKY: u32 = 0o1000;
const ROOT: u32 = 0;

/// An access list: its version, and then entries of a tag, rights and an id. See `acl(5)` and the kernel's
/// `posix_acl_xattr.h`.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// The longest value of an attribute that the kernel allows.
const LONGEST_LIST: usize = 65_536;
const LIST_VERSION: u32 = 2;
const LIST_OWNER: u16 = 0x01;
const LIST_USER: u16 = 0x02;
const LIST_GROUP_OF_FILE: u16 = 0x04;
const LIST_GROUP: u16 = 0x08;
const LIST_MASK: u16 = 0x10;
const LIST_WRITE: u16 = 0x02;

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
        // With an access list, the bits of the group are the most that its entries give.
        match access_list(path) {
            None => (!self.is_alone_in(found.gid())).then_some("the users of its group"),
            Some(list) => {
                (!self.is_alone_on(&list, found.gid())).then_some("the users of its access list")
            }
        }
    }

    /// True if an access list lets nobody write but this user and root. `group` is the one of the file.
    fn is_alone_on(&self, list: &[u8], group: u32) -> bool {
        let Some((version, entries)) = list.split_first_chunk() else { return false };
        let (entries, rest) = entries.as_chunks::<8>();
        *version == LIST_VERSION.to_le_bytes()
            && rest.is_empty()
            && entries.iter().all(|[tag, tag_high, right, right_high, id @ ..]| {
                let (tag, rights) = (
                    u16::from_le_bytes([*tag, *tag_high]),
                    u16::from_le_bytes([*right, *right_high]),
                );
                let id = u32::from_le_bytes(*id);
                rights & LIST_WRITE == 0
                    || match tag {
                        LIST_OWNER | LIST_MASK => true,
                        LIST_USER => [self.id, ROOT].contains(&id),
                        LIST_GROUP_OF_FILE => self.is_alone_in(group),
                        LIST_GROUP => self.is_alone_in(id),
                        // Others, and what a later version may add.
                        _ => false,
                    }
            })
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

/// The access list of a file or folder, as the kernel stores it. One that cannot be read is empty, which
/// trusts nobody.
fn access_list(path: &Path) -> Option<Vec<u8>> {
    let mut list = vec![0; LONGEST_LIST];
    match getxattr(path, ACCESS_LIST, &mut list) {
        Ok(length) => {
            list.truncate(length);
            Some(list)
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => None,
        Err(_) => Some(Vec::new()),
    }
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
    use rustix::fs::{XattrFlags, setxattr};

    const USERS: &str = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n\
                         bob:x:1001:1001::/home/bob:/bin/sh\neve:x:1002:1000::/home/eve:/bin/sh\n\
                         joe:x:1003:1003::/home/joe:/bin/sh\n";
    const GROUPS: &str = "root:x:0:\nann:x:1000:\nbob:x:1001:\njoe:x:1003:ann\nours:x:2000:bob,root\n\
                          team:x:2001:ann,bob\nnot a group\n";

    const STRANGER: u32 = 54_321;
    const NOBODY: u32 = u32::MAX;
    const OTHERS: u16 = 0x20;

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let entry = |(tag, rights, id): &(u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        LIST_VERSION.to_le_bytes().into_iter().chain(entries.iter().flat_map(entry)).collect()
    }

    #[test]
    fn an_access_list_names_who_may_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.db");
        std::fs::write(&path, "").unwrap();
        let user = User::present();
        for (tag, rights, id, is_told) in [
            (LIST_USER, 6, STRANGER, true),
            (LIST_USER, 4, STRANGER, false),
            (LIST_USER, 6, user.id, false),
            (LIST_GROUP, 6, STRANGER, true),
            (LIST_GROUP, 5, STRANGER, false),
        ] {
            let mut entries = vec![
                (LIST_OWNER, 6, NOBODY),
                (LIST_GROUP_OF_FILE, 4, NOBODY),
                (tag, rights, id),
                (LIST_MASK, 6, NOBODY),
                (OTHERS, 4, NOBODY),
            ];
            entries.sort_unstable_by_key(|it| it.0);
            match setxattr(&path, ACCESS_LIST, &list(&entries), XattrFlags::empty()) {
                Err(Errno::OPNOTSUPP) => return posse_testkit::skipped("access lists of files"),
                set => set.unwrap(),
            }
            let found = path.metadata().unwrap();
            assert_eq!(found.mode() & 0o777, 0o664, "the bits of the group are the mask");
            let told = is_told.then_some("the users of its access list");
            assert_eq!(user.writers(&path, &found), told, "{tag:x} {rights} {id}");
        }
    }

    #[test]
    fn an_access_list_that_is_not_understood_trusts_nobody() {
        let user = User::present();
        let entry = [(LIST_OWNER, 6, NOBODY)];
        assert!(user.is_alone_on(&list(&entry), 0));
        assert!(!user.is_alone_on(&list(&entry)[..7], 0));
        assert!(!user.is_alone_on(&list(&[(0x40, 2, ROOT)]), 0));
        assert!(!user.is_alone_on(&[3, 0, 0, 0], 0));
        assert!(!user.is_alone_on(&[], 0));
    }

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
