//! Compiles the source of the store in memory outside of the crate, where it can use only public
//! items, as a store of a host must. It passes the conformance tests.

/// Its paths begin with `crate::`, which is `posse_store::*` in this binary.
#[path = "../../src/memory/mod.rs"]
#[allow(dead_code, reason = "a host needs more of it than the suite")]
mod outside;

use async_trait::async_trait;
use outside::Memory;
use posse_protocol::{RunId, Seq};
use posse_store::Store;
use posse_store::conformance::{MovableClock, Subject, WallJump};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(1_000);

struct Memories {
    clock: Arc<MovableClock>,
    by_name: Mutex<HashMap<String, Memory>>,
}

impl Memories {
    fn new() -> Self {
        Memories { clock: MovableClock::new(), by_name: Mutex::default() }
    }
}

#[async_trait]
impl Subject for Memories {
    async fn open(&self, name: &str) -> Arc<dyn Store> {
        let mut by_name = self.by_name.lock().unwrap();
        let memory = by_name.entry(name.to_owned());
        let memory = memory.or_insert_with(|| Memory::with(self.clock.clone(), LEASE, None));
        Arc::new(memory.open())
    }

    async fn kill(&self, worker: Arc<dyn Store>) {
        // It has no tasks of its own.
        drop(worker);
    }

    fn lease(&self) -> Duration {
        LEASE
    }

    fn pass(&self, time: Duration) {
        self.clock.pass(time);
    }

    fn set_wall(&self, by: WallJump) {
        self.clock.set_wall(by);
    }

    async fn damage(&self, _: &str, _: RunId, _: Seq) {
        unreachable!("nobody can change what is in memory behind its back");
    }
}

posse_store::conformance_tests!(Memories::new(), except damage);
