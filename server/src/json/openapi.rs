//! The calls as OpenAPI. The descriptions are the comments of the protos.

use std::{collections::BTreeMap, env, fs, path::Path};

use prost_reflect::{
    FieldDescriptor, FileDescriptor, Kind, MessageDescriptor, prost_types::FileDescriptorProto,
};
use serde_json::{Map, Value, json};

use super::{
    TYPES,
    message::{BASE64, DURATION, HANDLE, TIMESTAMP, names},
    methods,
};

const DESCRIPTION: &str = "Locks, counters and latches of Ringfence over HTTP, on the port of the coordinator. 64-bit numbers are \
                           strings in answers, because JSON numbers of many languages have 53 bits; requests may have either.";

/// The comment on what is at `path` of a file.
fn comment(file: &FileDescriptorProto, path: &[i32]) -> String {
    let mut all = file.source_code_info.iter().flat_map(|info| &info.location);
    let found = all.find(|location| location.path == path);
    let lines = found.map_or("", |found| found.leading_comments());
    lines.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn reference(of: &MessageDescriptor) -> Value {
    json!({ "$ref": format!("#/components/schemas/{}", of.name()) })
}

#[derive(Default)]
struct Schemas(BTreeMap<String, Value>);

impl Schemas {
    /// Adds the schema of `of`, and of all messages in it.
    fn add(&mut self, of: &MessageDescriptor) {
        if self.0.contains_key(of.name()) {
            return;
        }
        self.0.insert(of.name().to_owned(), Value::Null);
        let file = of.parent_file();
        let file = file.file_descriptor_proto();
        let mut properties = Map::new();
        for field in of.fields() {
            let comment = comment(file, field.path());
            let mut schema = self.field(&field);
            if field.kind() == Kind::Bytes && field.name() != HANDLE {
                let name = format!("{}{BASE64}", field.json_name());
                let description =
                    format!("Instead of `{}`, if that is no UTF-8.", field.json_name());
                let bytes =
                    json!({ "type": "string", "format": "byte", "description": description });
                properties.insert(name, bytes);
            }
            schema["description"] = comment.into();
            properties.insert(field.json_name().to_owned(), schema);
        }
        let schema = json!({
            "type": "object",
            "description": comment(file, of.path()),
            "properties": properties,
        });
        self.0.insert(of.name().to_owned(), schema);
    }

    fn field(&mut self, field: &FieldDescriptor) -> Value {
        let one = match field.kind() {
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::String => json!({ "type": "string" }),
            Kind::Bytes if field.name() == HANDLE => json!({ "type": "string", "format": "byte" }),
            Kind::Bytes => json!({ "type": "string" }),
            Kind::Uint32 => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
            Kind::Uint64 => json!({ "type": "string", "format": "uint64" }),
            Kind::Int64 => json!({ "type": "string", "format": "int64" }),
            Kind::Enum(kind) => {
                let names: Vec<_> = names(&kind).map(|(_, name)| name).collect();
                json!({ "type": "string", "enum": names })
            }
            Kind::Message(of) => match of.full_name() {
                DURATION => json!({ "type": "string", "examples": ["1.5s"] }),
                TIMESTAMP => json!({ "type": "string", "format": "date-time" }),
                _ => {
                    self.add(&of);
                    reference(&of)
                }
            },
            other => panic!("{}: JSON has no {other:?}", field.full_name()),
        };
        match field.is_list() {
            true => json!({ "type": "array", "items": one }),
            false => one,
        }
    }

    /// The answer to a call that failed.
    fn add_error(&mut self) {
        let detail = TYPES
            .get_message_by_name("ringfence.v1.ErrorDetail")
            .unwrap();
        self.add(&detail);
        let mut error = self.0[detail.name()].clone();
        for (name, kind, description) in [
            ("code", "integer", "The status of HTTP."),
            ("status", "string", "The name of the code of gRPC."),
            ("message", "string", "The reason for people."),
        ] {
            error["properties"][name] = json!({ "type": kind, "description": description });
        }
        let error = json!({ "type": "object", "properties": { "error": error } });
        self.0.insert("Error".into(), error);
    }
}

fn paths(schemas: &mut Schemas) -> Map<String, Value> {
    let mut paths = Map::new();
    for (path, method) in methods() {
        let file: FileDescriptor = method.parent_service().parent_file();
        let comment = comment(file.file_descriptor_proto(), method.path());
        let (input, output) = (method.input(), method.output());
        schemas.add(&input);
        schemas.add(&output);
        let (kind, what) = match method.is_server_streaming() {
            true => (
                super::LINES,
                "One object per line, as they come. An error may be the last.",
            ),
            false => (super::JSON, "The answer."),
        };
        let content = |kind: &str, schema: Value| json!({ kind: { "schema": schema } });
        let error = json!({ "$ref": "#/components/schemas/Error" });
        let tag = path.split('/').nth(2).unwrap();
        let call = json!({
            "tags": [tag],
            "operationId": path["/v1/".len()..].replace(['/', '-'], "_"),
            "summary": comment.split_inclusive(". ").next().unwrap().trim(),
            "description": comment,
            "requestBody": { "required": true, "content": content(super::JSON, reference(&input)) },
            "responses": {
                "200": { "description": what, "content": content(kind, reference(&output)) },
                "default": { "description": "The call failed.", "content": content(super::JSON, error) },
            },
        });
        paths.insert(path, json!({ "post": call }));
    }
    paths
}

#[test]
fn the_file_in_docs_describes_every_call() {
    let mut schemas = Schemas::default();
    let paths = paths(&mut schemas);
    assert!(paths.len() >= 24, "{}", paths.len());
    schemas.add_error();
    let described = json!({
        "openapi": "3.1.0",
        "info": { "title": "Ringfence", "version": "v1", "description": DESCRIPTION },
        "servers": [{ "url": "http://127.0.0.1:7420" }],
        "security": [{}, { "bearer": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas.0,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    });
    let text = format!("{}\n", serde_json::to_string_pretty(&described).unwrap());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    if env::var_os("RINGFENCE_TEST_WRITE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/openapi.json is not that of the protos: RINGFENCE_TEST_WRITE=1 cargo test -p ringfence-server openapi"
    );
}
