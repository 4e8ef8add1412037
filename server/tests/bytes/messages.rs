//! Messages of every type that the proto has, with values at its limits.

use std::{collections::HashMap, fmt};

use proptest::prelude::*;
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint},
};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};
use ringfence_api::{DESCRIPTORS, Error, v1};
use ringfence_test_support::{damaged, damages};
use tonic::{Code, Status};

/// Messages in messages, at most.
const DEPTH_MAX: usize = 6;

const TEXTS: [&str; 8] = [
    "",
    "default",
    "ledger",
    "key",
    "Ä \n|",
    "redis://127.0.0.1:1",
    "1",
    "-",
];
const NUMBERS: [u64; 11] = [
    0,
    1,
    2,
    3,
    50,
    1000,
    1 << 31,
    (1 << 53) + 1,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX,
];

/// The methods and the messages of the API.
pub(super) struct Messages {
    pub(super) methods: Vec<Method>,
    types: HashMap<String, DescriptorProto>,
}

pub(super) struct Method {
    pub(super) path: String,
    /// The type of its messages.
    pub(super) input: String,
    pub(super) takes_many: bool,
}

impl Messages {
    pub(super) fn new() -> Self {
        let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap().file;
        let (mut methods, mut types) = (Vec::new(), HashMap::new());
        for file in files {
            let package = file.package().to_owned();
            for service in &file.service {
                // That one ends the coordinator.
                let calls = service.method.iter();
                let calls = calls.filter(|method| method.name() != "Drain");
                methods.extend(calls.map(|method| Method {
                    path: format!("/{package}.{}/{}", service.name(), method.name()),
                    input: method.input_type().to_owned(),
                    takes_many: method.client_streaming(),
                }));
            }
            let named =
                |message: DescriptorProto| (format!(".{package}.{}", message.name()), message);
            types.extend(file.message_type.into_iter().map(named));
        }
        assert!(methods.len() >= 31 && types.contains_key(".google.protobuf.Duration"));
        Self { methods, types }
    }

    /// A message of type `name`, as `choices` decide.
    pub(super) fn make(&self, name: &str, choices: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.fill(name, &mut choices.iter().copied(), 0, &mut bytes);
        bytes
    }

    fn fill(
        &self,
        name: &str,
        choices: &mut dyn Iterator<Item = u8>,
        depth: usize,
        bytes: &mut Vec<u8>,
    ) {
        let Some(message) = self.types.get(name).filter(|_| depth < DEPTH_MAX) else {
            return;
        };
        for field in &message.field {
            let times = match (choices.next(), field.label()) {
                (None, _) => return,
                (Some(0..=90), _) => 0,
                (Some(choice), Label::Repeated) => usize::from(choice % 4),
                (Some(_), _) => 1,
            };
            for _ in 0..times {
                self.field(field, choices, depth, bytes);
            }
        }
    }

    fn field(
        &self,
        field: &FieldDescriptorProto,
        choices: &mut dyn Iterator<Item = u8>,
        depth: usize,
        bytes: &mut Vec<u8>,
    ) {
        let tag = field.number() as u32;
        let choice = usize::from(choices.next().unwrap_or_default());
        let text = TEXTS[choice % TEXTS.len()];
        let content = match field.r#type() {
            Type::Message => {
                let mut inner = Vec::new();
                self.fill(field.type_name(), choices, depth + 1, &mut inner);
                inner
            }
            // Longer than every limit, at times.
            Type::String | Type::Bytes => text.repeat(1 + 300 * (choice / 250)).into_bytes(),
            Type::Double => {
                encode_key(tag, WireType::SixtyFourBit, bytes);
                let number = f64::from_bits(NUMBERS[choice % NUMBERS.len()]);
                bytes.extend(number.to_le_bytes());
                return;
            }
            _ => {
                encode_key(tag, WireType::Varint, bytes);
                encode_varint(NUMBERS[choice % NUMBERS.len()], bytes);
                return;
            }
        };
        encode_key(tag, WireType::LengthDelimited, bytes);
        encode_varint(content.len() as u64, bytes);
        bytes.extend(content);
    }
}

/// What can be decoded from `bytes` is the same once it is encoded.
fn again<M: Message + Default + PartialEq + fmt::Debug>(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(message) = M::decode(bytes) {
        let again = M::decode(&*message.encode_to_vec());
        prop_assert_eq!(again.unwrap(), message);
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_is_decoded_is_encoded_as_the_same(
        choices in proptest::collection::vec(any::<u8>(), 0..256),
        damages in damages(),
    ) {
        let messages = Messages::new();
        for name in ["SessionRequest", "SessionResponse", "AcquireRequest", "AcquireResponse", "ErrorDetail"] {
            let made = messages.make(&format!(".ringfence.v1.{name}"), &choices);
            for bytes in [&made, &damaged(&made, &damages), &choices] {
                again::<v1::SessionRequest>(bytes)?;
                again::<v1::SessionResponse>(bytes)?;
                again::<v1::AcquireRequest>(bytes)?;
                again::<v1::AcquireResponse>(bytes)?;
                again::<v1::TransferRequest>(bytes)?;
                again::<v1::GetAccountResponse>(bytes)?;
                again::<v1::ListResponse>(bytes)?;
                again::<v1::ErrorDetail>(bytes)?;
                // The details of a status, from a proxy for example.
                let status = Status::with_details(Code::Aborted, "", bytes.clone().into());
                let error = Error::from_status(&status);
                prop_assert_eq!(Error::from_status(&Status::from(error.clone())), error);
            }
        }
    }
}
