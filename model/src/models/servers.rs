//! The models that a local server lists.

use super::Models;
use super::endpoint::Endpoint;
use crate::catalog::{Locality, Vendor};
use crate::http;
use futures_util::future::join_all;
use serde::Deserialize;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::{Host, Url};

/// How long a server on this machine may take to accept a connection. Without a server, the
/// connection fails at once.
const CONNECT: Duration = Duration::from_millis(150);

/// How long a server that is there may take to answer.
const ANSWER: Duration = Duration::from_secs(1);

/// The first user id of a person. Accounts of services have lower ones.
const FIRST_PERSON: u32 = 1000;

/// The state of a listening socket in the table of the kernel.
const LISTENING: &str = "0A";

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
    /// Asks all local vendors at once, and returns their answers in order of preference: for each
    /// vendor, the names of its models, or why there are none.
    pub async fn local(&self) -> Vec<(&Vendor, Result<Vec<String>, String>)> {
        let local = self.catalog.vendors().iter().filter(|vendor| vendor.reach == Locality::Local);
        join_all(local.map(async |vendor| (vendor, self.offered(vendor).await))).await
    }

    /// The names of the models that `vendor` offers. Empty only when it says so.
    async fn offered(&self, vendor: &Vendor) -> Result<Vec<String>, String> {
        let endpoint =
            Endpoint::of(vendor, &self.keys, &vendor.name).map_err(|error| error.to_string())?;
        let shown = crate::http::address(&endpoint.base);
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

impl Models {
    /// False when another user of this machine may have started the server of `vendor`: that server
    /// would get files, and decide what an agent does.
    pub(super) fn is_trusted(&self, vendor: &Vendor) -> bool {
        let Ok(endpoint) = Endpoint::of(vendor, &self.keys, &vendor.name) else { return false };
        let is_here = match endpoint.base.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        // The user has named a server on another machine.
        !is_here || endpoint.base.port_or_known_default().is_some_and(is_ours)
    }
}

/// True when all sockets that listen at `port` belong to this user, root or a service.
fn is_ours(port: u16) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
    let owners: Vec<u32> =
        tables.iter().flatten().flat_map(|table| listening(table, port)).collect();
    !owners.is_empty() && owners.iter().all(|owner| *owner == own || *owner < FIRST_PERSON)
}

/// The users whose sockets listen at `port`, from one of the kernel's tables.
fn listening(table: &str, port: u16) -> impl Iterator<Item = u32> {
    table.lines().skip(1).filter_map(move |line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, number) = fields.get(1)?.rsplit_once(':')?;
        let is_meant = u16::from_str_radix(number, 16) == Ok(port) && *fields.get(3)? == LISTENING;
        fields.get(7)?.parse().ok().filter(|_| is_meant)
    })
}

/// Whether something listens at `url`.
async fn takes_connections(url: &Url) -> bool {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return false;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    matches!(timeout(CONNECT, TcpStream::connect((host, port))).await, Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_socket_listens_is_read_from_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
            0: 0100007F:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001  0 1\n\
            1: 0100007F:2CAA 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1002  0 1\n\
            2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0  0 1\n";
        assert_eq!(listening(table, 11434).collect::<Vec<_>>(), [1001]);
        assert_eq!(listening(table, 22).collect::<Vec<_>>(), [0]);
        assert_eq!(listening(table, 80).count(), 0);
    }
}
