//! Which models a local server offers, by its own list.

use super::Models;
use super::endpoint::Endpoint;
use crate::catalog::{Reach, Vendor};
use crate::http;
use futures_util::future::join_all;
use serde::Deserialize;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

/// How long a server on this machine may take to take a connection. One that is not there says so
/// at once.
const CONNECT: Duration = Duration::from_millis(150);

/// How long a server that is there may take to answer.
const ANSWER: Duration = Duration::from_secs(1);

/// The largest list that is read.
const MAX_LIST_BYTES: usize = 4 << 20;

/// What a server offers.
#[derive(Deserialize)]
struct List {
    data: Vec<Offered>,
}

#[derive(Deserialize)]
struct Offered {
    id: String,
}

impl Models {
    /// What the local vendors offer, all asked at once, in the order of preference: for each, the
    /// names of its models, or why there are none.
    pub async fn local(&self) -> Vec<(&Vendor, Result<Vec<String>, String>)> {
        let local = self.catalog.vendors().iter().filter(|vendor| vendor.reach == Reach::Local);
        join_all(local.map(async |vendor| (vendor, self.offered(vendor).await))).await
    }

    /// The names of the models that `vendor` offers. Empty only when it says so.
    async fn offered(&self, vendor: &Vendor) -> Result<Vec<String>, String> {
        let endpoint =
            Endpoint::of(vendor, &self.keys, &vendor.name).map_err(|error| error.to_string())?;
        let shown = address(&endpoint.base);
        if !takes_connections(&endpoint.base).await {
            return Err(format!("no server answers at {shown}"));
        }
        let url = endpoint.url("/models");
        let asked = async {
            let answer = self.http.get(&url, &endpoint.headers).await.ok()?;
            match answer.status().is_success() {
                true => http::body(answer, MAX_LIST_BYTES).await.ok(),
                false => None,
            }
        };
        let list = match timeout(ANSWER, asked).await {
            Ok(Some(body)) => serde_json::from_slice::<List>(&body).ok(),
            _ => None,
        };
        match list {
            Some(list) => Ok(list.data.into_iter().map(|offered| offered.id).collect()),
            None => Err(format!("what answers at {shown} lists no models")),
        }
    }
}

/// Whether something listens at `url`.
async fn takes_connections(url: &Url) -> bool {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return false;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    matches!(timeout(CONNECT, TcpStream::connect((host, port))).await, Ok(Ok(_)))
}

/// Where a server is, without what may be secret about it.
pub(crate) fn address(url: &Url) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}
