//! A cache between requests, so that a thousand runs of one agent do not encode the same tools a
//! thousand times. It keeps encoded tools, which are most of a short request, and the memory of
//! bodies.

use bytes::Bytes;
use parking_lot::Mutex;
use posse_protocol::ToolSpec;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// The number of tool sets to keep. A few agents that take turns share them.
const KEPT: usize = 8;

/// The number of buffers to keep, and the largest size. A body is sent soon after it was written,
/// so few are in use at once.
const SPARE: usize = 32;
const LARGEST: usize = 128 << 10;

/// The cache of one wire.
#[derive(Debug, Default)]
pub struct Written {
    /// Sets of tools, the most recently used first.
    tools: Mutex<Vec<Entry>>,
    spare: Spare,
}

/// Memory of bodies that have been sent.
type Spare = Arc<Mutex<Vec<Vec<u8>>>>;

#[derive(Debug)]
struct Entry {
    tools: Arc<[ToolSpec]>,
    text: Arc<RawValue>,
}

impl Written {
    /// An empty buffer with room for `length` bytes.
    pub(super) fn buffer(&self, length: usize) -> Vec<u8> {
        let spare = self.spare.lock().pop();
        let mut buffer = spare.unwrap_or_default();
        buffer.reserve(length);
        buffer
    }

    /// `body`, whose memory comes back when it has been sent.
    pub(crate) fn lend(&self, body: Vec<u8>) -> Bytes {
        Bytes::from_owner(Lent { body, home: self.spare.clone() })
    }

    /// `form`, which is how `tools` are written.
    pub(super) fn get(
        &self,
        tools: &Arc<[ToolSpec]>,
        form: &impl Serialize,
    ) -> Result<Arc<RawValue>, serde_json::Error> {
        let same = |it: &Entry| Arc::ptr_eq(&it.tools, tools) || it.tools == *tools;
        {
            let mut kept = self.tools.lock();
            if let Some(place) = kept.iter().position(same) {
                kept[..=place].rotate_right(1);
                return Ok(kept[0].text.clone());
            }
        }
        let text: Arc<RawValue> = to_raw_value(form)?.into();
        let mut kept = self.tools.lock();
        kept.truncate(KEPT - 1);
        kept.insert(0, Entry { tools: tools.clone(), text: text.clone() });
        Ok(text)
    }
}

/// A body on its way.
struct Lent {
    body: Vec<u8>,
    home: Spare,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.body);
        buffer.clear();
        let mut spare = self.home.lock();
        if spare.len() < SPARE && buffer.capacity() <= LARGEST {
            spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posse_protocol::Effect;

    fn tools(name: &str) -> Arc<[ToolSpec]> {
        let spec = ToolSpec::new(name, "Does it.", Effect::Read, serde_json::Value::Null);
        Arc::new([spec])
    }

    #[test]
    fn tools_that_are_alike_are_written_once() -> Result<(), serde_json::Error> {
        let written = Written::default();
        let first = written.get(&tools("one"), &["one"])?;
        assert_eq!(first.get(), r#"["one"]"#);
        assert!(Arc::ptr_eq(&first, &written.get(&tools("one"), &"not written again")?));
        assert_eq!(written.get(&tools("two"), &["two"])?.get(), r#"["two"]"#);
        Ok(())
    }

    #[test]
    fn those_that_were_not_needed_for_long_are_forgotten() -> Result<(), serde_json::Error> {
        let written = Written::default();
        let first = written.get(&tools("first"), &0)?;
        for number in 1..KEPT {
            written.get(&tools(&number.to_string()), &number)?;
            assert!(Arc::ptr_eq(&first, &written.get(&tools("first"), &0)?), "{number}");
        }
        for number in 0..KEPT {
            written.get(&tools(&format!("more {number}")), &number)?;
        }
        assert!(!Arc::ptr_eq(&first, &written.get(&tools("first"), &0)?));
        Ok(())
    }

    #[test]
    fn memory_of_a_body_is_used_again_once_nobody_reads_it() {
        let written = Written::default();
        let mut body = written.buffer(100);
        body.extend_from_slice(b"a body");
        let place = body.as_ptr();
        let sent = written.lend(body);
        let rest = sent.slice(2..);
        drop(sent);
        let other = written.buffer(1);
        assert_ne!(other.as_ptr(), place);
        assert_eq!(rest, "body");
        drop(rest);
        let again = written.buffer(1);
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
    }

    #[test]
    fn little_memory_is_kept() {
        let written = Written::default();
        drop(written.lend(Vec::with_capacity(LARGEST + 1)));
        assert!(written.spare.lock().is_empty());
        let many: Vec<Bytes> = (0..=SPARE).map(|_| written.lend(vec![1])).collect();
        drop(many);
        assert_eq!(written.spare.lock().len(), SPARE);
    }
}
