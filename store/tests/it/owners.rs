//! Whose tables Posse uses on a server: those of its role, with nothing of other roles in them.

use crate::cluster::database;
use posse_store::{PostgresOptions, PostgresStore, Store};

#[tokio::test]
async fn tables_of_another_role_are_refused() {
    let database = database().await;
    let name = database.name().to_owned();
    let (role, other) = (format!("{name}_own"), format!("{name}_other"));
    database.execute(&format!(
        "CREATE ROLE {role} LOGIN; CREATE ROLE {other} LOGIN; \
         GRANT CREATE ON DATABASE {name} TO {role}, {other}; \
         CREATE SCHEMA before AUTHORIZATION {other}; GRANT ALL ON SCHEMA before TO {role}"
    ));
    let url = database.url().replace("user=posse", &format!("user={role}"));
    let open = async |schema: &str| {
        let schema = schema.to_owned();
        let opened = PostgresStore::open(PostgresOptions { schema, ..PostgresOptions::new(&url) });
        match opened.await {
            Ok(store) => {
                store.close().await;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    };
    let why = open("before").await.unwrap_err();
    assert!(why.contains(&format!("the role {other} owns schema before")), "{why}");
    open("own").await.unwrap();
    open("own").await.unwrap();
    // One table is enough.
    database.execute(&format!(
        "GRANT ALL ON SCHEMA own TO {other}; ALTER TABLE own.events OWNER TO {other}"
    ));
    let why = open("own").await.unwrap_err();
    assert!(why.contains(&other), "{why}");
    // The other role, or a member of it, may have made this one a member.
    database.execute(&format!("GRANT {other} TO {role}; ALTER ROLE {other} NOLOGIN"));
    let why = open("own").await.unwrap_err();
    assert!(why.contains(&other), "{why}");
    // So could who may create something there.
    database.execute(&format!(
        "REVOKE ALL ON SCHEMA own FROM {other}; ALTER TABLE own.events OWNER TO {role}"
    ));
    open("own").await.unwrap();
    for (who, named) in
        [(&*other, format!("the role {other} may")), ("PUBLIC", "every role may".to_owned())]
    {
        database.execute(&format!("GRANT CREATE ON SCHEMA own TO {who}"));
        let why = open("own").await.unwrap_err();
        assert!(why.contains(&named) && why.contains(&format!("own FROM {who}")), "{why}");
        database.execute(&format!("REVOKE CREATE ON SCHEMA own FROM {who}"));
    }
    // Who takes the other role on purpose trusts it.
    database.execute(&format!("ALTER SCHEMA own OWNER TO {other}"));
    database.execute(&format!(
        "DO $$ DECLARE it TEXT; BEGIN
            FOR it IN SELECT tablename FROM pg_tables WHERE schemaname = 'own' LOOP
                EXECUTE format('ALTER TABLE own.%I OWNER TO {other}', it);
            END LOOP;
            ALTER FUNCTION own.posse_now() OWNER TO {other};
            ALTER FUNCTION own.posse_begin(INTEGER, TEXT) OWNER TO {other};
            ALTER FUNCTION own.posse_lock(TEXT[]) OWNER TO {other};
         END $$"
    ));
    let as_other = format!("{url}&options[role]={other}");
    let taken = PostgresOptions { schema: "own".to_owned(), ..PostgresOptions::new(as_other) };
    PostgresStore::open(taken).await.unwrap().close().await;
    // Nothing of theirs runs for someone who only asks for facts, least of all as a superuser.
    database.execute(&format!(
        "CREATE SCHEMA trap AUTHORIZATION {other};
         CREATE TABLE trap.touched (by TEXT);
         CREATE FUNCTION trap.touch() RETURNS BIGINT LANGUAGE sql SECURITY INVOKER
            AS 'INSERT INTO trap.touched VALUES (current_user) RETURNING 3';
         CREATE VIEW trap.marks AS SELECT 'schema' AS name, trap.touch() AS number;
         ALTER FUNCTION trap.touch() OWNER TO {other}; ALTER VIEW trap.marks OWNER TO {other}"
    ));
    let schema = || "trap".to_owned();
    let superuser = PostgresOptions { schema: schema(), ..PostgresOptions::new(database.url()) };
    let facts = PostgresStore::status(&superuser).await.map(|_| ());
    assert!(facts.unwrap_err().to_string().contains(&other));
    assert_eq!(database.text("SELECT count(*) FROM trap.touched"), "0");
    // A function in a schema that the server searches, for just these arguments.
    database.execute(
        "CREATE FUNCTION public.pg_total_relation_size(relation OID) RETURNS BIGINT LANGUAGE sql
            AS 'INSERT INTO trap.touched VALUES (current_user) RETURNING CAST(7 AS BIGINT)'",
    );
    let own = PostgresOptions { schema: "mine".to_owned(), ..PostgresOptions::new(database.url()) };
    PostgresStore::open(own.clone()).await.unwrap().close().await;
    assert!(PostgresStore::status(&own).await.unwrap().bytes > 7);
    assert_eq!(database.text("SELECT count(*) FROM trap.touched"), "0");
    // Everybody's schema belongs to a role that stands for the owner of the database.
    let public = || "public".to_owned();
    let public = PostgresOptions { schema: public(), ..PostgresOptions::new(database.url()) };
    PostgresStore::open(public).await.unwrap().close().await;
    database.execute(&format!(
        "DROP OWNED BY {role}, {other} CASCADE; DROP ROLE {role}; DROP ROLE {other}"
    ));
}

/// What another role left where this role's tables are, after it handed over the tables and lost its rights.
#[tokio::test]
async fn what_another_role_left_at_the_tables_is_refused() {
    let database = database().await;
    let name = database.name().to_owned();
    let (role, other) = (format!("{name}_own"), format!("{name}_other"));
    database.execute(&format!(
        "CREATE ROLE {role} LOGIN; CREATE ROLE {other}; CREATE SCHEMA posse AUTHORIZATION {role};
         CREATE SCHEMA far AUTHORIZATION {other}; CREATE SCHEMA near;
         GRANT USAGE ON SCHEMA far TO {role}; GRANT {role} TO {other};
         CREATE FUNCTION far.act() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
         CREATE FUNCTION far.say() RETURNS BIGINT LANGUAGE sql AS 'SELECT CAST(7 AS BIGINT)';
         CREATE FUNCTION far.same(one TEXT, two TEXT) RETURNS BOOLEAN LANGUAGE sql AS 'SELECT true';
         CREATE FUNCTION posse.mine() RETURNS BIGINT LANGUAGE sql AS 'SELECT CAST(7 AS BIGINT)';
         ALTER FUNCTION far.act() OWNER TO {other}; ALTER FUNCTION far.say() OWNER TO {other};
         ALTER FUNCTION far.same(TEXT, TEXT) OWNER TO {other}; ALTER FUNCTION posse.mine() OWNER TO {role}"
    ));
    let url = database.url().replace("user=posse", &format!("user={role}"));
    let open = async || match PostgresStore::open(PostgresOptions::new(&url)).await {
        Ok(store) => {
            store.close().await;
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    };
    // Its own schema is enough: the role may create none.
    open().await.unwrap();
    open().await.unwrap();
    for (leave, remove) in [
        (
            "CREATE TRIGGER act BEFORE INSERT ON posse.events FOR EACH ROW EXECUTE FUNCTION far.act()",
            "DROP TRIGGER act ON posse.events",
        ),
        (
            "CREATE OPERATOR posse.= (LEFTARG = text, RIGHTARG = text, FUNCTION = far.same)",
            "DROP OPERATOR posse.= (text, text)",
        ),
        (
            "ALTER TABLE posse.marks ALTER number SET DEFAULT far.say()",
            "ALTER TABLE posse.marks ALTER number DROP DEFAULT",
        ),
        (
            "CREATE RULE act AS ON INSERT TO posse.events DO ALSO SELECT far.say()",
            "DROP RULE act ON posse.events",
        ),
        (
            "CREATE POLICY act ON posse.events USING (far.say() > 0)",
            "DROP POLICY act ON posse.events",
        ),
        (
            "ALTER TABLE posse.marks ADD CONSTRAINT act CHECK (number < far.say() + 100)",
            "ALTER TABLE posse.marks DROP CONSTRAINT act",
        ),
        ("CREATE VIEW posse.seen AS SELECT far.say() AS it", "DROP VIEW posse.seen"),
        (
            "CREATE VIEW near.seen AS SELECT far.say() AS it; \
             CREATE VIEW posse.seen AS SELECT it FROM near.seen",
            "DROP VIEW near.seen CASCADE",
        ),
        (
            "CREATE TABLE near.kid (CHECK (far.say() > 0)) INHERITS (posse.marks)",
            "DROP TABLE near.kid",
        ),
        (
            "CREATE DOMAIN near.figure AS BIGINT CHECK (VALUE < far.say() + 100); \
             CREATE TABLE posse.more (it near.figure)",
            "DROP DOMAIN near.figure CASCADE; DROP TABLE posse.more",
        ),
    ] {
        database.execute(leave);
        let why = open().await.expect_err(leave);
        assert!(why.contains(&format!("the role {other} owns function far.")), "{leave}: {why}");
        database.execute(remove);
        open().await.unwrap();
    }
    // What uses Posse's tables from elsewhere does not matter to Posse.
    database.execute(&format!(
        "CREATE VIEW far.runs AS SELECT id FROM posse.runs; ALTER VIEW far.runs OWNER TO {other};
         GRANT CREATE ON DATABASE {name} TO {other};
         CREATE PUBLICATION copies FOR TABLE posse.events; ALTER PUBLICATION copies OWNER TO {other};
         CREATE TRIGGER own BEFORE INSERT ON posse.events FOR EACH ROW EXECUTE FUNCTION far.act();
         ALTER FUNCTION far.act() OWNER TO {role};
         DROP FUNCTION far.say(); DROP FUNCTION far.same(TEXT, TEXT)"
    ));
    open().await.unwrap();
    // A schema that others may use as soon as it is there.
    database.execute(&format!(
        "GRANT CREATE ON DATABASE {name} TO {role};
         ALTER DEFAULT PRIVILEGES FOR ROLE {role} GRANT CREATE ON SCHEMAS TO {other}"
    ));
    let new = || PostgresOptions { schema: "new".to_owned(), ..PostgresOptions::new(&url) };
    let why = PostgresStore::open(new()).await.err().unwrap().to_string();
    assert!(why.contains(&format!("the role {other} may create objects")), "{why}");
    let made = "SELECT count(*) FROM pg_namespace WHERE nspname = 'new'";
    assert_eq!(database.text(made), "0");
    database.execute(&format!(
        "ALTER DEFAULT PRIVILEGES FOR ROLE {role} REVOKE CREATE ON SCHEMAS FROM {other};
         DROP OWNED BY {role}, {other} CASCADE; DROP ROLE {role}; DROP ROLE {other}"
    ));
}
