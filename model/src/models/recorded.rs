//! Models of a cassette. A replay uses them as they were recorded, without the catalog of the day
//! and without keys.

use super::endpoint::{Endpoint, below};
use super::{Abilities, Choice, ChoiceReason, Models};
use crate::cassette::{Cassette, RecordedModel, Replay};
use crate::catalog::{Caps, Found, usable_url};
use crate::governor::{Governor, Pacing};
use crate::input_kinds::InputKinds;
use crate::remote::{Remote, Server};
use crate::wire::Written;
use crate::{ResolveError, http};
use posse_agent::ModelInfo;
use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;

impl RecordedModel {
    pub(super) fn abilities(&self) -> Abilities {
        Abilities {
            tools: self.tools,
            output_schema: self.dialect.output_schema,
            priced: self.price.is_some(),
        }
    }
}

impl Models {
    /// Records every call into `cassette`, or answers it from there in place of the network. It
    /// never contains keys.
    #[must_use]
    pub fn with_cassette(self, cassette: Cassette) -> Self {
        self.with_cassette_hiding(cassette, &[])
    }

    /// Does the same, and also hides `others`: secrets that are not keys of models.
    #[must_use]
    pub fn with_cassette_hiding(mut self, cassette: Cassette, others: &[Vec<u8>]) -> Self {
        let variables = self.catalog.vendors().iter().flat_map(|vendor| &vendor.key_variables);
        let keys = self.keys.values(variables).map(ExposeSecret::expose_secret);
        cassette.attach(keys, others, self.options.stall);
        self.http = self.http.with_cassette(cassette);
        self
    }

    fn replay(&self) -> Option<&Replay> {
        self.http.cassette()?.replay().map(|replay| &**replay)
    }

    /// In a replay, the model of the cassette that `asked` stands for.
    pub(super) fn recorded(&self, asked: &str) -> Option<Result<&RecordedModel, ResolveError>> {
        let replay = self.replay()?;
        let by_id = |id: &str| replay.cast().iter().find(|cast| cast.id == id);
        let known = || by_id(&self.catalog.find(asked).ok()?.id());
        Some(by_id(asked).or_else(known).ok_or_else(|| {
            let recorded: Vec<&str> = replay.cast().iter().map(|cast| cast.id.as_str()).collect();
            ResolveError::NotRecorded {
                name: asked.to_owned(),
                path: replay.path().display().to_string(),
                recorded: if recorded.is_empty() { "none".into() } else { recorded.join(", ") },
            }
        }))
    }

    /// In a replay, the model that was recorded first. If there is none, no provider was called: it
    /// is the last resort of the host.
    pub(super) fn recorded_choice(&self) -> Option<Result<Choice, ResolveError>> {
        let replay = self.replay()?;
        let path = replay.path().display().to_string();
        let recorded = replay.cast().first().map(|cast| cast.id.as_str());
        let model = recorded.or_else(|| Some(self.last_resort()?.name()));
        Some(match model {
            Some(model) => {
                Ok(Choice { model: model.to_owned(), why: ChoiceReason::Cassette { path } })
            }
            None => Err(ResolveError::NothingToTake {
                reason: format!("the cassette {path} has none"),
                remedy: "name one, or record again".to_owned(),
            }),
        })
    }

    /// A model that replays the cassette.
    pub(super) fn replayed(&self, cast: &RecordedModel) -> Result<Remote, ResolveError> {
        let base = usable_url(&cast.base).map_err(|reason| ResolveError::UnusableUrl {
            place: format!("`base` of {} in the cassette", cast.id),
            reason,
            example: "https://api.example.com".to_owned(),
        })?;
        // A replay needs no governor.
        let (name, address) = (cast.id.clone(), http::address(&base));
        let governor = Governor::new(name, address, Pacing::Off, Caps::default());
        Ok(Remote {
            info: ModelInfo {
                id: cast.id.clone(),
                context_window: cast.window,
                max_output: cast.max_output,
                price: cast.price.unwrap_or_default(),
            },
            url: below(&base, &cast.wire.path(&cast.name)),
            name: cast.name.clone(),
            wire: cast.wire,
            dialect: cast.dialect.clone(),
            written: Written::default(),
            sight: InputKinds { images: cast.images, documents: cast.documents },
            headers: HeaderMap::new(),
            key: SecretString::default(),
            key_source: cast.key_source.clone(),
            http: self.http.clone(),
            governor: Arc::new(governor),
            stall: self.options.stall,
            server: cast
                .id
                .split_once('/')
                .and_then(|(vendor, _)| self.catalog.vendor(vendor).and_then(Server::of)),
        })
    }

    /// While recording, notes what is known of a model that can be called now.
    pub(super) fn record(&self, found: &Found<'_>, endpoint: &Endpoint) {
        let Some(Cassette::Recording(recording)) = self.http.cassette() else { return };
        let mut base = endpoint.base.clone();
        base.set_query(None);
        base.set_fragment(None);
        // A URL with a host always takes both.
        let _ = base.set_username("");
        let _ = base.set_password(None);
        let properties = &found.properties;
        recording.cast(RecordedModel {
            id: found.id(),
            name: found.name.clone(),
            wire: found.wire(),
            base: base.to_string(),
            key_source: endpoint.key_source.clone(),
            window: properties.window,
            max_output: properties.max_output,
            price: properties.price.as_ref().map(|dated| dated.price),
            tools: properties.tools,
            images: properties.images,
            documents: properties.documents,
            dialect: found.dialect.clone(),
        });
    }
}
