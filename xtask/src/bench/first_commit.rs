//! The smallest program that stores one row, durably and with the libraries of Posse, before it makes
//! its request: the part of a cold start that every such program has.

mod client;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};
use std::error::Error;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("give the base URL")?;
    let body = arguments.next().ok_or("give the body")?;
    let database = arguments.next().ok_or("give the database")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(database).create_if_missing(true);
        let options = options.journal_mode(SqliteJournalMode::Wal);
        let mut connection = options.synchronous(SqliteSynchronous::Full).connect().await?;
        // Both statements in one message to the thread of the engine.
        let store = "CREATE TABLE IF NOT EXISTS events (event TEXT NOT NULL);
                     INSERT INTO events (event) VALUES ('begun')";
        sqlx::raw_sql(store).execute(&mut connection).await?;
        client::ask(&client::build()?, &url, body.into()).await?;
        Ok(connection.close().await?)
    })
}
