//! The database that the suite's schemas are in, and who works with them: as the server has it, or set
//! otherwise in every way that must not matter.

use a2_store_postgres::tokio_postgres::{self, Client, NoTls};

use crate::BoxError;
use crate::servers::fresh_name;

/// What a password is for a role that nobody else knows.
const PASSWORD: &str = "a2";

/// Settings of the role's connections that change how values are read, written and named by who relies
/// on them. The zone is the one furthest from UTC.
const ODD: [(&str, &str); 4] = [
    ("timezone", "'Pacific/Kiritimati'"),
    ("datestyle", "'German, DMY'"),
    ("extra_float_digits", "-15"),
    ("search_path", "''"),
];

/// Where the schemas are.
pub(super) struct Database {
    /// Reaches it as who makes them.
    pub(super) owner: String,
    /// A role that owns nothing works with them.
    role: Option<Role>,
}

struct Role {
    name: String,
    url: String,
}

impl Database {
    /// The one that the server's URL leads to.
    pub(super) fn usual(url: &str) -> Self {
        Self { owner: url.to_owned(), role: None }
    }

    /// A new one with a natural language's collation, a far time zone and settings nobody has, and a
    /// role that owns nothing.
    pub(super) async fn odd(url: &str) -> Result<Self, BoxError> {
        let name = fresh_name();
        let server = connect(url).await?;
        let collation = collation(&server).await?;
        let create =
            format!("create database {name} template template0 encoding 'UTF8' {collation}");
        server.batch_execute(&create).await?;
        let role = format!("{name}_role");
        server.batch_execute(&format!("create role {role} login password '{PASSWORD}'")).await?;
        for (setting, value) in ODD {
            let set = format!("alter role {role} in database {name} set {setting} = {value}");
            server.batch_execute(&set).await?;
        }
        let owner = with(url, &format!("dbname={name}"));
        let is_odd = connect(&owner).await?.query_one("select 'a' < 'B'", &[]).await?;
        if !is_odd.try_get::<_, bool>(0)? {
            return Err(format!("{collation}: it orders by bytes").into());
        }
        let url = with(&owner, &format!("user={role}&password={PASSWORD}"));
        Ok(Self { owner, role: Some(Role { name: role, url }) })
    }

    /// Reaches it as who works with the schemas.
    pub(super) fn url(&self) -> &str {
        self.role.as_ref().map_or(&self.owner, |role| &role.url)
    }

    /// Lets the role work with a schema: what the crate's documentation says that it needs.
    pub(super) async fn grant(&self, schema: &str) -> Result<(), BoxError> {
        let Some(Role { name, .. }) = &self.role else { return Ok(()) };
        let grants = format!(
            "grant usage on schema {schema} to {name};
             grant select, insert, update, delete on all tables in schema {schema} to {name};
             grant execute on all functions in schema {schema} to {name}"
        );
        Ok(connect(&self.owner).await?.batch_execute(&grants).await?)
    }
}

/// How a database is made that orders text as people do.
async fn collation(server: &Client) -> Result<String, BoxError> {
    // Databases have ICU's since version 15, where the server was built with it.
    let icu = "select from pg_collation
               where collname = 'en-US-x-icu'
                 and current_setting('server_version_num')::int >= 150000";
    if server.query_opt(icu, &[]).await?.is_some() {
        let settings = "locale_provider icu icu_locale 'en-US' lc_collate 'C' lc_ctype 'C'";
        return Ok(settings.to_owned());
    }
    let libc = "select collcollate::text from pg_collation
                where collprovider = 'c' and collencoding = 6 and collcollate !~ '^(C|POSIX)'
                order by collcollate !~ '^en_US', collcollate limit 1";
    match server.query_opt(libc, &[]).await? {
        Some(row) => {
            let name: &str = row.try_get(0)?;
            Ok(format!("lc_collate '{name}' lc_ctype '{name}'"))
        }
        None => Err("the server has no collation of a natural language: neither ICU's nor one of \
                     the system's locales (on Debian, `locale-gen en_US.UTF-8` makes one)"
            .into()),
    }
}

/// A URL that says this as well; what is said last counts.
fn with(url: &str, parameters: &str) -> String {
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{parameters}")
}

/// A connection until the client is dropped.
pub(super) async fn connect(url: &str) -> Result<Client, BoxError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
