//! A bounded map that keeps entries that are used and forgets the others.

use std::collections::HashMap;

/// A map from hashes, in two generations. When the young one is full it becomes the old one, and
/// the old one is forgotten; what is found in the old one moves to the young one.
#[derive(Debug)]
pub(crate) struct Memory<V> {
    young: HashMap<u64, V>,
    old: HashMap<u64, V>,
    /// Entries of one generation.
    capacity: usize,
}

impl<V> Memory<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Memory { young: HashMap::new(), old: HashMap::new(), capacity }
    }

    pub(crate) fn get(&mut self, key: u64) -> Option<&mut V> {
        if !self.young.contains_key(&key) {
            let value = self.old.remove(&key)?;
            self.insert(key, value);
        }
        self.young.get_mut(&key)
    }

    pub(crate) fn insert(&mut self, key: u64, value: V) {
        if self.young.len() >= self.capacity && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;

    #[test]
    fn it_stays_small_and_keeps_what_is_asked_for() {
        let mut memory = Memory::new(10);
        memory.insert(0, "kept");
        for key in 1..1000 {
            memory.insert(key, "passing");
            assert_eq!(memory.get(0), Some(&mut "kept"));
            assert!(memory.young.len() + memory.old.len() <= 20);
        }
        assert_eq!(memory.get(1), None);
    }
}
