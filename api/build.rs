//! Generates the messages, clients and servers from `proto/`, without protoc.

use std::{env, error::Error, fs, path::PathBuf};

use protox::prost::Message;

const FILES: [&str; 6] = [
    "ringfence/v1/admin.proto",
    "ringfence/v1/counter.proto",
    "ringfence/v1/error.proto",
    "ringfence/v1/latch.proto",
    "ringfence/v1/lock.proto",
    "ringfence/v1/session.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let directory = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(
        directory.join("descriptors.bin"),
        descriptors.encode_to_vec(),
    )?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
