//! Fields that this version does not know. They are kept and written back unchanged.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Unknown fields of a stored or received object, in order. Takes one word of memory when empty.
///
/// Used with `#[serde(flatten)]` in every stored struct.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra(Option<Box<Map<String, Value>>>);

impl Extra {
    /// True when there was no unknown field.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The unknown fields, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().flat_map(|map| map.iter())
    }
}

impl From<Map<String, Value>> for Extra {
    fn from(map: Map<String, Value>) -> Self {
        Extra((!map.is_empty()).then(|| Box::new(map)))
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Extra::from)
    }
}
