//! TLS to a real server, with a certificate authority of the test.
//!
//! No name leads to the server by DNS. But the resolver of the system reads an address that is written
//! as one hexadecimal number, and for everything else it is a name like any other: it is no loopback
//! address, and a certificate can be made for it.

use crate::sample::*;
use posse_store::{Ownership, PostgresOptions, PostgresStore, ServerIdentity, Store, StoreError};
use posse_testkit::postgres::{Database, Server};
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;

/// Makes an authority and a certificate for the name `$2`, in the folder `$1`.
const AUTHORITY: &str = r#"
set -eu
cd "$1"
openssl ecparam -name prime256v1 -genkey -noout -out authority.key
openssl req -x509 -new -key authority.key -subj "/CN=the authority of $(mktemp -u XXXXXXXX)" \
    -days 2 -out authority.pem
openssl ecparam -name prime256v1 -genkey -noout -out server.key
openssl req -new -key server.key -subj '/CN=a server' -out server.csr
printf 'subjectAltName = DNS:%s\nbasicConstraints = CA:FALSE\n' "$2" >extensions
openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 \
    -extfile extensions -out server.pem
chmod 600 server.key
chown "$(stat -c %u data 2>/dev/null || id -u)" server.key
"#;

#[allow(clippy::disallowed_methods)]
fn make_authority(folder: &Path, name: &str) {
    let made = std::process::Command::new("bash")
        .args(["-c", AUTHORITY, "authority"])
        .arg(folder)
        .arg(name)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A loopback address of this process alone, so that tests can use the same port at the same time.
fn own_address() -> Ipv4Addr {
    let [_, a, b, c] = std::process::id().to_be_bytes();
    // None of the first addresses, which others may use.
    Ipv4Addr::new(127, a | 0x80, b, c)
}

/// The address as a name.
fn name_of(address: Ipv4Addr) -> String {
    format!("0x{:08x}", u32::from(address))
}

fn url(database: &Database, host: &str, settings: &str) -> String {
    format!("postgres://posse@{host}/{}?{settings}", database.name())
}

async fn open(url: String, server: ServerIdentity) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(PostgresOptions { server, ..PostgresOptions::new(url) }).await
}

/// Opens a store at `url`, uses it, and returns whether its sessions are encrypted.
async fn is_encrypted(database: &Database, url: String, server: ServerIdentity) -> bool {
    let store = open(url, server).await.unwrap();
    let run = create(&store, 2, Ownership::Mine).await;
    say(&store, run, "hello").await.unwrap();
    assert_eq!(read(&store, run).await.unwrap(), 3);
    let sessions = "SELECT string_agg(DISTINCT ssl::text, ' ') FROM pg_stat_ssl \
        JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'posse %' \
        AND datname = current_database()";
    let encrypted = database.text(sessions);
    store.close().await;
    assert!(["true", "false"].contains(&encrypted.as_str()), "{encrypted}");
    encrypted == "true"
}

/// Fails to open a store at `url`, and returns the error as it is shown.
async fn refusal(url: String, server: ServerIdentity) -> String {
    match open(url.clone(), server).await {
        Err(StoreError::Unusable { path, reason }) => {
            assert!(path.starts_with("postgres://posse@"), "{path}");
            reason
        }
        Err(other) => panic!("{url}: {other:?}"),
        Ok(_) => panic!("{url} was opened"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_this_machine_needs_the_certificate_of_its_name() {
    use ServerIdentity::{Unverified, Verified};
    let address = own_address();
    let name = name_of(address);
    let database = Server::alone_with(&[&format!("listen_addresses={address}")]).database();
    let folder = database.folder().to_owned();
    make_authority(&folder, &name);
    let other = tempfile::tempdir().unwrap();
    make_authority(other.path(), &name);
    let trust = |folder: &Path| format!("sslrootcert={}/authority.pem", folder.display());
    let (known, unknown) = (trust(&folder), trust(other.path()));
    let mut addresses = std::fs::File::options().append(true).open(folder.join("data/pg_hba.conf"));
    writeln!(addresses.as_mut().unwrap(), "host all all {address}/32 trust").unwrap();
    database.execute("SELECT pg_reload_conf()");
    let in_the_open = url(&database, &name, "sslmode=disable");
    let reloaded = || async { open(in_the_open.clone(), Unverified).await.is_ok() };
    until("the server accepts sessions", reloaded).await;
    let plain = refusal(url(&database, &name, &known), Verified).await;
    assert!(plain.contains("does not support TLS; turn it on there"), "{plain}");
    assert!(!is_encrypted(&database, in_the_open.clone(), Unverified).await);
    let asked = refusal(in_the_open, Verified).await;
    assert!(asked.contains("anyone on the way could read or change"), "{asked}");

    let file = |file: &str| folder.join(file).display().to_string();
    database.execute(&format!("ALTER SYSTEM SET ssl_cert_file = '{}'", file("server.pem")));
    database.execute(&format!("ALTER SYSTEM SET ssl_key_file = '{}'", file("server.key")));
    database.execute("ALTER SYSTEM SET ssl = on");
    database.execute("SELECT pg_reload_conf()");
    until("the server speaks TLS", async || database.text("SHOW ssl") == "on").await;
    let reloaded = || async {
        let offered = url(&database, &address.to_string(), "sslmode=require");
        open(offered, Unverified).await.is_ok()
    };
    until("new sessions speak TLS", reloaded).await;
    assert!(is_encrypted(&database, url(&database, &name, &known), Verified).await);
    let full = format!("sslmode=verify-full&{known}");
    assert!(is_encrypted(&database, url(&database, &name, &full), Verified).await);

    // A certificate of somebody else, and one that is for another name.
    for settings in [unknown.as_str(), ""] {
        let reason = refusal(url(&database, &name, settings), Verified).await;
        assert!(reason.contains("does not prove"), "{reason}");
        assert!(reason.contains("UnknownIssuer") && reason.contains("sslrootcert="), "{reason}");
        assert!(is_encrypted(&database, url(&database, &name, settings), Unverified).await);
    }
    let same = name.replace("0x", "0x0");
    let reason = refusal(url(&database, &same, &known), Verified).await;
    assert!(reason.contains("not valid for name"), "{reason}");
    assert!(is_encrypted(&database, url(&database, &same, &known), Unverified).await);
    for weaker in ["disable", "prefer", "require", "verify-ca"] {
        let settings = format!("sslmode={weaker}&{known}");
        let reason = refusal(url(&database, &name, &settings), Verified).await;
        assert!(reason.contains("verify-full"), "{weaker}: {reason}");
    }
    // An address of this machine needs no certificate, and gets what its own settings ask for.
    let loopback = address.to_string();
    let own = format!("sslmode=verify-full&{known}");
    let reason = refusal(url(&database, &loopback, &own), Verified).await;
    assert!(reason.contains("not valid for name"), "{reason}");
    assert!(!is_encrypted(&database, url(&database, &loopback, "sslmode=disable"), Verified).await);
}
