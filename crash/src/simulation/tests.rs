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
