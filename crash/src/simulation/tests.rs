use super::node::Mistake;
use super::*;

const SMALL: Simulation = Simulation { seed: 0, workers: 6, runs: 30 };

#[test]
fn the_laws_hold_in_small_worlds() {
    let mut sum = Tally::default();
    for seed in 1..=24 {
        let simulated = Simulation { seed, ..SMALL }.play().unwrap();
        let first = simulated.breaches.first();
        assert!(first.is_none(), "seed {seed}: {}", first.unwrap());
        sum += &simulated.tally;
    }
    // The worlds are not harmless.
    assert!(sum.lost > 0 && sum.reordered > 0 && sum.learned > 0, "{sum}");
    assert!(sum.deaths > 0 && sum.takeovers > 0 && sum.fenced > 0, "{sum}");
}

#[test]
fn a_seed_happens_again_exactly() {
    for seed in [7, 8] {
        let size = Simulation { seed, ..SMALL };
        let (one, other) = (size.play().unwrap(), size.play().unwrap());
        assert_eq!((one.digest, &one.tally), (other.digest, &other.tally));
    }
    let other = Simulation { seed: 9, ..SMALL }.play().unwrap();
    assert_ne!(SMALL.play().unwrap().digest, other.digest);
}

/// Returns the laws that worlds with this mistake break, and how many of the worlds do.
fn broken(mistake: Mistake) -> (BTreeSet<Law>, usize) {
    let (mut laws, mut worlds) = (BTreeSet::new(), 0);
    for seed in 1..=5 {
        let mut stage = Stage::new(Simulation { seed, ..SMALL }).unwrap();
        stage.node.mistake = Some(mistake);
        stage.limit = stage.scene.faults.until + 30 * SECOND;
        stage.run();
        let breaches = stage.conclude().breaches;
        worlds += usize::from(!breaches.is_empty());
        laws.extend(breaches.iter().map(|breach| breach.law));
    }
    (laws, worlds)
}

#[test]
fn a_store_that_forgets_what_it_has_stored_is_found() {
    let (laws, worlds) = broken(Mistake::ForgetsNumbers);
    assert!(laws.contains(&Law::NothingLost) && worlds > 0, "{laws:?} in {worlds}");
}

#[test]
fn a_store_that_accepts_stale_owners_is_found() {
    let (laws, worlds) = broken(Mistake::AcceptsTheStale);
    assert!(laws.contains(&Law::NoStaleWrite) && worlds > 0, "{laws:?} in {worlds}");
}

#[test]
fn a_store_that_never_ends_a_lease_is_found() {
    let (laws, worlds) = broken(Mistake::KeepsTheDead);
    assert!(laws.contains(&Law::NoRunStuck) && worlds > 0, "{laws:?} in {worlds}");
}

/// Cuts all workers off from the store for this long, at the moment when the store commits a claim,
/// and returns how the world ended.
fn after_an_outage(size: Simulation, length: u64) -> Simulated {
    let mut stage = Stage::new(size).unwrap();
    (stage.scene.faults.until, stage.scene.faults.pace) = (2 * length, 1 << 50);
    stage.limit = stage.scene.faults.until + 60 * SECOND;
    while let Some(happening) = stage.scene.next() {
        let is_commit = matches!(
            &happening,
            Happening::AtStore(Request { wish: Wish::Commit { work, .. }, .. })
                if work.claims.is_some()
        );
        let cut = if is_commit { length } else { 0 };
        (0..stage.workers.len() as u32).for_each(|worker| stage.scene.cut_off(worker, cut));
        let claims = stage.ledger.claims.len();
        stage.happen(happening);
        if stage.ledger.claims.len() > claims && stage.scene.now > SECOND {
            break;
        }
    }
    stage.run();
    stage.conclude()
}

#[test]
fn the_laws_hold_after_an_outage_of_the_whole_store() {
    for seed in 1..=4 {
        let breaches = after_an_outage(Simulation { seed, ..SMALL }, 20 * SECOND).breaches;
        assert!(breaches.is_empty(), "seed {seed}: {breaches:?}");
    }
}

/// A worker that gives up asking how a claim ended may own runs that it does not know. It renews its
/// lease, so no other worker takes them: it must ask for them again.
#[test]
fn the_laws_hold_after_an_outage_longer_than_the_patience_of_a_client() {
    for seed in 1..=40 {
        let size = Simulation { seed, workers: 1, ..SMALL };
        let simulated = after_an_outage(size, 40 * SECOND);
        assert!(simulated.breaches.is_empty(), "seed {seed}: {:?}", simulated.breaches);
    }
}
