//! Generates the messages and clients of etcd from `proto/`, without protoc; without the feature `etcd`, nothing.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    #[cfg(feature = "etcd")]
    tonic_prost_build::configure()
        .build_server(false)
        .compile_fds(protox::compile(["etcd.proto"], ["proto"])?)?;
    Ok(())
}
