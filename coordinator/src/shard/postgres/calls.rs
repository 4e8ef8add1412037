//! Calls of the functions in schema.sql.

use tokio_postgres::{
    Client, Error, Row, Statement,
    types::{ToSql, Type},
};

use crate::shard::docs::sql::SCHEMA_VERSION;

/// A function: its name, and the types of its arguments.
pub(super) struct Function(&'static str, &'static [Type]);

pub(super) const OPEN: Function = Function("open", &[Type::TEXT, Type::INT8, Type::TEXT]);

pub(super) const READ: Function = Function(
    "read",
    &[
        Type::TEXT,
        Type::BYTEA_ARRAY,
        Type::INT8,
        Type::INT8,
        Type::TEXT,
    ],
);

pub(super) const PAGE: Function = Function("page", &[Type::TEXT, Type::BYTEA, Type::INT8]);

pub(super) const COMMIT: Function = Function(
    "commit",
    &[
        Type::TEXT,
        Type::INT8,
        Type::TEXT,
        Type::BOOL,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::BYTEA_ARRAY,
        Type::INT8_ARRAY,
        Type::BYTEA_ARRAY,
        Type::BOOL_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
    ],
);

pub(super) const SWEEP: Function = Function("sweep", &[Type::BYTEA]);

/// How a function is called.
pub(super) enum Call {
    /// Parsed once per connection.
    Prepared(Statement),
    /// Parsed each time: behind a pooler, each call may be made on another connection to the server.
    Whole(String, &'static [Type]),
}

impl Function {
    /// A call of the function in `schema`, which is quoted.
    pub(super) fn whole(&self, schema: &str) -> Call {
        let Self(name, types) = *self;
        let arguments: Vec<String> = (1..=types.len()).map(|place| format!("${place}")).collect();
        let arguments = arguments.join(", ");
        let function = format!("{schema}.{name}_{SCHEMA_VERSION}");
        Call::Whole(format!("SELECT * FROM {function}({arguments})"), types)
    }
}

impl Call {
    /// The same, parsed now.
    pub(super) async fn prepared(self, client: &Client) -> Result<Self, Error> {
        match self {
            Self::Whole(text, types) => {
                Ok(Self::Prepared(client.prepare_typed(&text, types).await?))
            }
            Self::Prepared(_) => Ok(self),
        }
    }

    /// The row that the function returns.
    pub(super) async fn row(
        &self,
        client: &Client,
        arguments: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, Error> {
        match self {
            Self::Prepared(statement) => client.query_one(statement, arguments).await,
            Self::Whole(text, types) => {
                let typed = arguments.iter().copied().zip(types.iter().cloned());
                let typed: Vec<_> = typed.collect();
                client.query_typed_one(text, &typed).await
            }
        }
    }
}
