//! How to reach a database on a PostgreSQL server, according to settings files.

use super::Setting;
use super::table::settings;
use super::value::DatabaseAddress;

settings! {
    /// How to reach a database on a PostgreSQL server, and where each value came from.
    pub struct PostgresSettings, "postgres.", from struct FilePostgres {
        /// A file that contains only the password. Without it, the password comes from the address, from
        /// `PGPASSWORD` or from `~/.pgpass`.
        password_file: Setting<Option<String>> = None => "none", Later, User;
        /// `false`: the server need not prove its identity, and the connection may be plain. Anyone on the
        /// network between could then read and change everything. A server on this machine need not
        /// prove it in any case.
        verify: Setting<bool> = true, Later, User;
        /// The address for notifications, if `database` leads to a pooler that keeps no sessions, such as
        /// PgBouncer in transaction mode.
        notify_at: Setting<Option<DatabaseAddress>> = None => "the address of the database", Later, User;
        /// `false`: processes do not notify each other. Each looks for changes twice a second.
        notifications: Setting<bool> = true, Later, User;
        /// The schema of the tables.
        schema: Setting<String> = "posse".to_owned(), Later, User;
    }
}
