//! `ringfence ring`: shows, plans and resizes, on real servers.

mod etcd;
mod locks_only;
mod moved;
mod namespaces;
mod postgresql;
mod readdressed;
mod remove_failed;
mod shown;

use crate::binary::{Output, ringfence};
use ringfence_test_support::Servers;
use serde_json::Value;

/// A topology of `members` servers, at the first of them; the others are spare.
async fn founded(members: usize, spare: usize) -> Servers {
    founded_with(members, spare, &[]).await
}

/// Removal is leased. The heirs of a shard wait for the end of a view.
const LEASED: [&str; 4] = ["--removal", "leased", "--view-lease", "4s"];

async fn founded_with(members: usize, spare: usize, more: &[&str]) -> Servers {
    let servers = Servers::spawn(members + spare).await;
    let urls = servers.urls();
    let named = urls[..members].join(",");
    let mut args = vec!["ring", "init", "--servers-are-new"];
    args.extend(["--topology", &urls[0], "--redis", &named]);
    args.extend(more);
    let founded = ringfence(&args);
    assert_eq!(founded.code, 0, "{founded:?}");
    servers
}

/// `ringfence ring`; the first server is enough to find the others.
fn ring(servers: &Servers, args: &[&str]) -> Output {
    let url = &servers.urls()[0];
    ringfence(&[&["ring"], args, &["--redis", url]].concat())
}

fn told(output: &Output) -> Value {
    assert_eq!(output.code, 0, "{output:?}");
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// One part of each of `list`.
fn each(list: &Value, part: &str) -> Vec<Value> {
    let list = list.as_array().unwrap();
    list.iter().map(|one| one[part].clone()).collect()
}

/// How many keys each server has, and what the record's server keeps.
async fn everything(servers: &Servers) -> (Vec<u64>, String) {
    let mut sizes = Vec::new();
    for index in 0..servers.servers.len() {
        sizes.push(servers.ask(index, &["DBSIZE"]).await);
    }
    let record = servers.ask(0, &["GET", "ringfence:topology"]).await;
    (sizes, record)
}
