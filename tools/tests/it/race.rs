//! A folder becomes a link to outside and back, thousands of times, while tools use it.

use crate::fixture::{CANARY, Fixture};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const SWAPS: u32 = 6000;
const ROUNDS: u32 = 200;

#[test]
fn a40_a_folder_swapped_for_a_link_never_leads_outside() {
    let fixture = Fixture::new();
    fixture.put("folder/canary", "inside");
    symlink(fixture.outside(), fixture.path("link")).unwrap();
    let (folder, link) = (fixture.path("folder"), fixture.path("link"));
    let (swaps, done) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // One exchange is one step: the name is always there, as a folder or as a link.
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            let here = rustix::fs::CWD;
            while !done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(here, &folder, here, &link, exchange).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (mut inside, mut refused, mut naive) = (0, 0, 0);
        for round in 0.. {
            let call = |tool, input| fixture.call(tool, input).joined_text();
            let read = call("Read", json!({"file_path": "folder/canary"}));
            assert!(!read.contains(CANARY), "read outside");
            inside += u32::from(read.contains("inside"));
            refused += u32::from(read.contains("outside of the working folder"));
            // The race is real: whoever opens by path does get outside now and then.
            let by_path = std::fs::read_to_string(fixture.path("folder/canary"));
            naive += u32::from(by_path.is_ok_and(|text| text == CANARY));

            let content = format!("inside {round}");
            call("Write", json!({"file_path": "folder/canary", "content": content}));
            call("Write", json!({"file_path": format!("folder/new{round}"), "content": ""}));
            call("Write", json!({"file_path": format!("folder/sub{round}/x"), "content": ""}));
            let edit =
                json!({"file_path": "folder/canary", "old_string": "in", "new_string": "inside"});
            call("Edit", edit);
            let search = json!({"pattern": "canary:", "output_mode": "content"});
            assert!(!call("Grep", search).contains(CANARY), "searched outside");
            call("List", json!({"path": "folder"}));
            if round >= ROUNDS && swaps.load(Ordering::Relaxed) >= SWAPS {
                let seen = inside.min(refused).min(naive);
                if seen > 0 || round > 100 * ROUNDS {
                    assert!(seen > 0, "{inside} inside, {refused} refused, {naive} by path");
                    break;
                }
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    fixture.canary_is_whole();
}
