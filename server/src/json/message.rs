//! Messages as JSON: the mapping of proto3, in a form for people. Keys and nonces are text, and the names of an enum come
//! without its own.

use std::{collections::BTreeSet, str::FromStr};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};
use prost::{Message, bytes::Bytes};
use prost_reflect::{
    DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage as _,
    Value,
};
use prost_types::{Duration, Timestamp};
use ringfence_api::{Error, Reason};
use serde_json::{Map, Value as Json};

pub(super) const DURATION: &str = "google.protobuf.Duration";
pub(super) const TIMESTAMP: &str = "google.protobuf.Timestamp";

/// Bytes that are never text.
pub(super) const HANDLE: &str = "handle";

/// Added to the name of a field whose bytes may be text, and are not.
pub(super) const BASE64: &str = "Base64";

/// Characters of a name that is not known, in an error.
const NAME_MAX: usize = 64;

/// Reads a message of type `of`. An error names the field as `json` does.
pub(super) fn read(of: &MessageDescriptor, json: &Json) -> Result<DynamicMessage, Error> {
    object(of, "", json)
}

fn object(of: &MessageDescriptor, path: &str, json: &Json) -> Result<DynamicMessage, Error> {
    let Json::Object(members) = json else {
        let path = if path.is_empty() { "body" } else { path };
        return Err(Error::invalid(path, shown(json), "an object"));
    };
    let mut message = DynamicMessage::new(of.clone());
    let mut chosen = BTreeSet::new();
    for (name, json) in members {
        let dot = if path.is_empty() { "" } else { "." };
        let Some((field, is_base64)) = field(of, name) else {
            let name: String = name.chars().take(NAME_MAX).collect();
            let fields: Vec<_> = of
                .fields()
                .map(|field| field.json_name().to_owned())
                .collect();
            let limit = format!("one of {}", fields.join(", "));
            return Err(Error::invalid(
                &format!("{path}{dot}{name}"),
                "no field",
                limit,
            ));
        };
        if json.is_null() {
            continue;
        }
        let path = format!("{path}{dot}{name}");
        if let Some(choice) = field.containing_oneof()
            && !chosen.insert(choice.full_name().to_owned())
        {
            let names: Vec<_> = choice
                .fields()
                .map(|field| field.json_name().to_owned())
                .collect();
            let limit = format!("the only one of {}", names.join(", "));
            return Err(Error::invalid(&path, "not the only one", limit));
        }
        let value = match field.is_list() {
            true => list(&field, is_base64, &path, json)?,
            false => value(&field, is_base64, &path, json)?,
        };
        let set = message.try_set_field(&field, value);
        set.map_err(|error| Error::new(Reason::Internal, error.to_string()))?;
    }
    Ok(message)
}

fn list(field: &FieldDescriptor, is_base64: bool, path: &str, json: &Json) -> Result<Value, Error> {
    let Json::Array(values) = json else {
        return Err(Error::invalid(path, shown(json), "a list"));
    };
    let value =
        |(nth, json): (usize, &Json)| value(field, is_base64, &format!("{path}[{nth}]"), json);
    let values = values.iter().enumerate().map(value);
    Ok(Value::List(values.collect::<Result<_, _>>()?))
}

/// The field called `name`, and whether its bytes are in base64.
fn field(of: &MessageDescriptor, name: &str) -> Option<(FieldDescriptor, bool)> {
    let called = |name: &str| {
        let field = of.get_field_by_json_name(name);
        field.or_else(|| of.get_field_by_name(name))
    };
    if let Some(field) = called(name) {
        let is_base64 = field.name() == HANDLE;
        return Some((field, is_base64));
    }
    let field = called(name.strip_suffix(BASE64)?)?;
    (field.kind() == Kind::Bytes && field.name() != HANDLE).then_some((field, true))
}

fn value(
    field: &FieldDescriptor,
    is_base64: bool,
    path: &str,
    json: &Json,
) -> Result<Value, Error> {
    let (kind, text) = (field.kind(), json.as_str());
    let (read, limit) = match &kind {
        Kind::Bool => (json.as_bool().map(Value::Bool), "true or false".into()),
        Kind::String => (text.map(|text| Value::String(text.into())), "a text".into()),
        Kind::Bytes if is_base64 => {
            let bytes = text.and_then(base64).map(Value::Bytes);
            // It may be a secret.
            return bytes.ok_or_else(|| Error::invalid(path, "something else", "base64"));
        }
        Kind::Bytes => {
            let bytes = text.map(|text| Bytes::copy_from_slice(text.as_bytes()));
            (bytes.map(Value::Bytes), "a text".into())
        }
        Kind::Uint32 => (number(json).map(Value::U32), whole(u32::MIN, u32::MAX)),
        Kind::Uint64 => (number(json).map(Value::U64), whole(u64::MIN, u64::MAX)),
        Kind::Int64 => (number(json).map(Value::I64), whole(i64::MIN, i64::MAX)),
        Kind::Enum(kind) => {
            let names: Vec<_> = names(kind).map(|(_, name)| name).collect();
            let limit = format!("one of {}", names.join(", "));
            (choice(kind, json).map(Value::EnumNumber), limit)
        }
        Kind::Message(kind) => match kind.full_name() {
            DURATION => {
                let length = text.and_then(|text| text.parse::<Duration>().ok());
                let length = length.map(|length| Value::Message(dynamic(kind, &length)));
                (length, "seconds, as \"1.5s\"".into())
            }
            TIMESTAMP => {
                let time = text.and_then(|text| text.parse::<Timestamp>().ok());
                let time = time.map(|time| Value::Message(dynamic(kind, &time)));
                (time, "a time, as \"2026-01-31T12:00:00Z\"".into())
            }
            _ => (
                Some(Value::Message(object(kind, path, json)?)),
                String::new(),
            ),
        },
        _ => (None, "a field that JSON can have".into()),
    };
    read.ok_or_else(|| Error::invalid(path, shown(json), limit))
}

/// With either alphabet, with and without padding.
fn base64(text: &str) -> Option<Bytes> {
    let config = GeneralPurposeConfig::new();
    let config = config.with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabet = match text.contains(['-', '_']) {
        true => &alphabet::URL_SAFE,
        false => &alphabet::STANDARD,
    };
    let decoded = GeneralPurpose::new(alphabet, config).decode(text);
    decoded.ok().map(Bytes::from)
}

/// As a number, or as text: clients in JavaScript and others lose the last digits of large numbers.
fn number<T: FromStr>(json: &Json) -> Option<T> {
    match json {
        Json::Number(number) => number.to_string().parse().ok(),
        Json::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn whole(least: impl ToString, most: impl ToString) -> String {
    let (least, most) = (least.to_string(), most.to_string());
    format!("a whole number, {least} to {most}")
}

/// The numbers and the names of an enum. The names of a proto begin with that of their enum.
pub(super) fn names(kind: &EnumDescriptor) -> impl Iterator<Item = (i32, String)> {
    let own = format!("{}_", words(kind.name(), '_').to_uppercase());
    let values: Vec<_> = kind
        .values()
        .map(|value| (value.number(), value.name().to_owned()))
        .collect();
    let short = move |name: String| name.strip_prefix(&own).map(str::to_owned).unwrap_or(name);
    values
        .into_iter()
        .map(move |(number, name)| (number, short(name)))
}

fn choice(kind: &EnumDescriptor, json: &Json) -> Option<i32> {
    if let Some(number) = json.as_i64() {
        return number.try_into().ok();
    }
    let text = json.as_str()?;
    let short = names(kind).find(|(_, name)| name == text);
    let long = kind.get_value_by_name(text).map(|value| value.number());
    short.map(|(number, _)| number).or(long)
}

/// A refused value.
fn shown(json: &Json) -> String {
    match json {
        Json::Array(_) => "a list".into(),
        Json::Object(_) => "an object".into(),
        other => other.to_string(),
    }
}

/// `message`, which is of type `of`.
pub(super) fn dynamic(of: &MessageDescriptor, message: &impl Message) -> DynamicMessage {
    let mut dynamic = DynamicMessage::new(of.clone());
    let copied = dynamic.transcode_from(message);
    copied.expect("it is the same type");
    dynamic
}

/// Writes a message, with all its numbers, texts and lists, also if they are empty.
pub(super) fn write(message: &DynamicMessage) -> Json {
    let of = message.descriptor();
    match of.full_name() {
        DURATION => return text::<Duration>(message),
        TIMESTAMP => return text::<Timestamp>(message),
        _ => {}
    }
    let mut members = Map::new();
    for field in of.fields() {
        if field.supports_presence() && !message.has_field(&field) {
            continue;
        }
        let (mut name, value) = (field.json_name().to_owned(), message.get_field(&field));
        let json = match &*value {
            Value::Bytes(bytes) => match str::from_utf8(bytes) {
                Ok(text) if field.name() != HANDLE => text.into(),
                _ => {
                    if field.name() != HANDLE {
                        name += BASE64;
                    }
                    BASE64_STANDARD.encode(bytes).into()
                }
            },
            value => json(value, &field.kind()),
        };
        members.insert(name, json);
    }
    members.into()
}

fn text<T: Message + Default + ToString>(message: &DynamicMessage) -> Json {
    let same = message.transcode_to::<T>();
    same.expect("it is the same type").to_string().into()
}

fn json(value: &Value, kind: &Kind) -> Json {
    match (value, kind) {
        (Value::Bool(value), _) => (*value).into(),
        (Value::U32(value), _) => (*value).into(),
        (Value::U64(value), _) => value.to_string().into(),
        (Value::I64(value), _) => value.to_string().into(),
        (Value::String(value), _) => (&**value).into(),
        (Value::Message(value), _) => write(value),
        (Value::List(values), kind) => values.iter().map(|value| json(value, kind)).collect(),
        (Value::EnumNumber(number), Kind::Enum(kind)) => {
            let name = names(kind).find(|(known, _)| known == number);
            name.map_or_else(|| (*number).into(), |(_, name)| name.into())
        }
        _ => Json::Null,
    }
}

/// `name`, whose words begin with capital letters, with `between` between them.
pub(super) fn words(name: &str, between: char) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(between);
        }
        words.push(letter);
    }
    words
}
