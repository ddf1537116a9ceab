//! Prompt caching as providers do it: which prefixes were seen before, and what a prompt costs.
//! Others can read what a prompt writes once its answer has begun. The cache keeps only hashes, and
//! a bounded number of them. Nothing expires with time, so that the counts do not depend on the
//! speed of the machine.

use crate::hash;
use crate::memory::Memory;
use crate::prompt::{Lifetime, Prompt, TOKEN, tokens};
use parking_lot::Mutex;
use std::sync::Arc;

/// Prefixes that are remembered, in each of two generations.
const REMEMBERED: usize = 1 << 18;
/// How many blocks back from a mark, itself included, a prefix is looked for.
const LOOK_BACK: usize = 20;
/// The step in tokens between prefixes that the provider chooses.
const STEP: usize = 128;

/// How a provider decides what to cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Up to the marks that the request sets.
    Marked,
    /// All that it has seen, in whole steps.
    Automatic,
}

/// The tokens of a prompt: read from the cache, written to it, or neither. Their sum is the whole
/// prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    /// Neither read from the cache nor written to it.
    pub(crate) fresh: u64,
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// The part of `written` that is kept for an hour.
    pub(crate) written_for_an_hour: u64,
}

/// The prefixes that were seen.
#[derive(Debug)]
pub(crate) struct PromptCache {
    /// Tokens that a prefix must have.
    minimum: u64,
    seen: Mutex<Memory<()>>,
}

/// What a prompt writes to the cache.
#[derive(Debug)]
pub(crate) struct Written {
    cache: Arc<PromptCache>,
    prefixes: Vec<u64>,
}

impl Written {
    /// From now on others can read it.
    pub(crate) fn keep(self) {
        let mut seen = self.cache.seen.lock();
        for prefix in self.prefixes {
            seen.insert(prefix, ());
        }
    }
}

impl Charge {
    /// Nothing cached.
    pub(crate) fn uncached(prompt: &Prompt) -> Self {
        Charge { fresh: prompt.tokens(), ..Charge::default() }
    }
}

impl PromptCache {
    pub(crate) fn new(minimum: u64) -> Self {
        PromptCache { minimum, seen: Mutex::new(Memory::new(REMEMBERED)) }
    }

    /// What the prompt costs now, and what it writes. Prompts with different `scope` share no
    /// cache.
    pub(crate) fn charge(
        self: &Arc<Self>,
        scope: u64,
        caching: Caching,
        prompt: &Prompt,
    ) -> (Charge, Written) {
        let (charge, prefixes) = match caching {
            _ if prompt.tokens() < self.minimum => (Charge::uncached(prompt), Vec::new()),
            Caching::Marked => self.charge_marked(scope, prompt),
            Caching::Automatic => self.charge_automatic(scope, prompt),
        };
        (charge, Written { cache: self.clone(), prefixes })
    }

    fn charge_marked(&self, scope: u64, prompt: &Prompt) -> (Charge, Vec<u64>) {
        let blocks = prompt.blocks();
        let counts = |position: &usize| tokens(blocks[*position].end) >= self.minimum;
        let marked = (0..blocks.len()).filter(|position| blocks[*position].mark.is_some());
        let marks: Vec<usize> = marked.filter(counts).collect();
        let Some(&last) = marks.last() else {
            return (Charge::uncached(prompt), Vec::new());
        };
        let ends: Vec<usize> = blocks[..=last].iter().map(|block| block.end).collect();
        let prefixes = chain(scope, prompt.text(), ends.iter().copied());

        let mut seen = self.seen.lock();
        let looked_at = marks.iter().rev().flat_map(|mark| (0..=*mark).rev().take(LOOK_BACK));
        // The search begins at the last mark, so the first match is the longest.
        let found = looked_at.into_iter().find(|position| seen.get(prefixes[*position]).is_some());
        drop(seen);

        let up_to = |position: usize| tokens(ends[position]);
        let read = found.map_or(0, up_to);
        let for_an_hour =
            marks.iter().rev().find(|mark| blocks[**mark].mark == Some(Lifetime::OneHour));
        let charge = Charge {
            fresh: prompt.tokens() - up_to(last),
            read,
            written: up_to(last) - read,
            written_for_an_hour: for_an_hour.map_or(0, |mark| up_to(*mark).saturating_sub(read)),
        };
        (charge, marks.iter().map(|mark| prefixes[*mark]).collect())
    }

    fn charge_automatic(&self, scope: u64, prompt: &Prompt) -> (Charge, Vec<u64>) {
        let length = STEP * TOKEN;
        let steps = prompt.text().len() / length;
        let smallest = usize::try_from(self.minimum).unwrap_or(usize::MAX).div_ceil(STEP).max(1);
        if steps < smallest {
            return (Charge::uncached(prompt), Vec::new());
        }
        let mut prefixes = chain(scope, prompt.text(), (1..=steps).map(|step| step * length));

        let mut seen = self.seen.lock();
        let found = (smallest..=steps).rev().find(|step| seen.get(prefixes[*step - 1]).is_some());
        drop(seen);

        let up_to = |step: usize| (step * STEP) as u64;
        let read = found.map_or(0, up_to);
        let charge = Charge {
            fresh: prompt.tokens() - up_to(steps),
            read,
            written: up_to(steps) - read,
            written_for_an_hour: 0,
        };
        prefixes.drain(..smallest - 1);
        (charge, prefixes)
    }
}

/// The hash of the text up to each end, each made from the one before.
fn chain(scope: u64, text: &[u8], ends: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut start = 0;
    let mut state = scope;
    let prefixes = ends.map(|end| {
        state = hash::extend(state, &text[start..end]);
        start = end;
        state
    });
    prefixes.collect()
}

#[cfg(test)]
mod tests {
    use super::{Caching, Charge, LOOK_BACK, PromptCache};
    use crate::prompt::{Lifetime, Prompt};
    use std::sync::Arc;

    const SHORT: Option<Lifetime> = Some(Lifetime::FiveMinutes);
    const LONG: Option<Lifetime> = Some(Lifetime::OneHour);

    fn cache(minimum: u64) -> Arc<PromptCache> {
        Arc::new(PromptCache::new(minimum))
    }

    /// What the prompt costs, and is kept.
    fn charge(cache: &Arc<PromptCache>, scope: u64, caching: Caching, prompt: &Prompt) -> Charge {
        let (charge, written) = cache.charge(scope, caching, prompt);
        written.keep();
        charge
    }

    /// A prompt of these blocks: each a text of its own, as long as 100 tokens.
    fn prompt(blocks: &[(&str, Option<Lifetime>)]) -> Prompt {
        let mut prompt = Prompt::default();
        for (name, mark) in blocks {
            prompt.push(&format!("{name:.>400}"));
            prompt.end_block(*mark);
        }
        prompt
    }

    /// Checks what a prompt of these blocks costs, in hundreds of tokens.
    #[track_caller]
    fn check(cache: &Arc<PromptCache>, blocks: &[(&str, Option<Lifetime>)], costs: [u64; 4]) {
        let charge = charge(cache, 1, Caching::Marked, &prompt(blocks));
        let [fresh, read, written, written_for_an_hour] = costs.map(|cost| cost * 100);
        assert_eq!(charge, Charge { fresh, read, written, written_for_an_hour });
    }

    #[test]
    fn a_prefix_is_read_at_the_mark_where_it_was_written() {
        let cache = cache(100);
        check(&cache, &[("a", SHORT), ("b", None)], [1, 0, 1, 0]);
        check(&cache, &[("a", SHORT), ("b", None)], [1, 1, 0, 0]);
        // A mark may move on: the one before it is found by looking back.
        check(&cache, &[("a", None), ("b", SHORT), ("c", None)], [1, 1, 1, 0]);
        check(&cache, &[("a", None), ("b", None), ("c", SHORT)], [0, 2, 1, 0]);
        // Without a mark nothing is read or written.
        check(&cache, &[("a", None), ("b", None), ("c", None)], [3, 0, 0, 0]);
        check(&cache, &[("x", None), ("b", SHORT)], [0, 0, 2, 0]);
        check(&cache, &[("x", SHORT)], [0, 0, 1, 0]);
    }

    #[test]
    fn a_change_costs_what_comes_after_it() {
        let cache = cache(100);
        check(&cache, &[("a", SHORT), ("b", SHORT), ("c", SHORT)], [0, 0, 3, 0]);
        check(&cache, &[("a", SHORT), ("b", SHORT), ("d", SHORT)], [0, 2, 1, 0]);
        check(&cache, &[("a", SHORT), ("e", SHORT), ("c", SHORT)], [0, 1, 2, 0]);
        check(&cache, &[("f", SHORT), ("b", SHORT), ("c", SHORT)], [0, 0, 3, 0]);
    }

    #[test]
    fn a_mark_looks_back_twenty_blocks_and_no_further() {
        for (between, read) in [(LOOK_BACK - 2, 1), (LOOK_BACK - 1, 0)] {
            let cache = cache(100);
            check(&cache, &[("a", SHORT)], [0, 0, 1, 0]);
            let mut blocks = vec![("a", None)];
            blocks.extend(std::iter::repeat_n(("b", None), between));
            blocks.push(("c", SHORT));
            let whole = blocks.len() as u64;
            check(&cache, &blocks, [0, read, whole - read, 0]);
        }
    }

    #[test]
    fn what_is_kept_for_an_hour_is_told_apart() {
        let cache = cache(100);
        check(&cache, &[("a", LONG), ("b", SHORT)], [0, 0, 2, 1]);
        check(&cache, &[("a", LONG), ("c", LONG), ("d", SHORT)], [0, 1, 2, 1]);
        check(&cache, &[("a", LONG), ("c", LONG), ("d", SHORT)], [0, 3, 0, 0]);
    }

    #[test]
    fn a_short_prefix_is_not_cached() {
        let cache = cache(200);
        for _ in 0..2 {
            check(&cache, &[("a", SHORT), ("b", None)], [2, 0, 0, 0]);
        }
        check(&cache, &[("a", SHORT), ("b", SHORT)], [0, 0, 2, 0]);
    }

    #[test]
    fn an_automatic_prefix_grows_in_steps() {
        let cache = cache(1024);
        let charged = |tokens: usize, end: &str| {
            let mut prompt = Prompt::default();
            prompt.push(&"text".repeat(tokens));
            prompt.push(end);
            charge(&cache, 1, Caching::Automatic, &prompt)
        };
        let cost = |fresh, read, written| Charge { fresh, read, written, written_for_an_hour: 0 };
        assert_eq!(charged(1023, ""), cost(1023, 0, 0));
        assert_eq!(charged(1100, ""), cost(76, 0, 1024));
        assert_eq!(charged(1100, ""), cost(76, 1024, 0));
        assert_eq!(charged(1300, ""), cost(20, 1024, 256));
        // The last step contains the end, which has changed.
        assert_eq!(charged(1407, "tale"), cost(0, 1280, 128));
        assert_eq!(charged(1407, "told"), cost(0, 1280, 128));
    }

    #[test]
    fn what_shares_no_scope_shares_no_cache() {
        let cache = cache(100);
        let prompt = prompt(&[("a", SHORT), ("b", SHORT)]);
        for scope in [1, 2] {
            assert_eq!(charge(&cache, scope, Caching::Marked, &prompt).read, 0);
            assert_eq!(charge(&cache, scope, Caching::Marked, &prompt).read, 200);
        }
    }

    #[test]
    fn what_is_written_can_be_read_once_it_is_kept() {
        let marked = prompt(&[("a", SHORT)]);
        let mut long = Prompt::default();
        long.push(&"text".repeat(128));
        for (caching, prompt) in [(Caching::Marked, marked), (Caching::Automatic, long)] {
            let cache = cache(100);
            let (_, written) = cache.charge(1, caching, &prompt);
            assert_eq!(cache.charge(1, caching, &prompt).0.read, 0);
            written.keep();
            assert_eq!(cache.charge(1, caching, &prompt).0.read, prompt.tokens());
        }
    }
}
