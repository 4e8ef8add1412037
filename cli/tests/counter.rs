//! `ringfence counter`, on real servers.

use std::process::Stdio;

use crate::{
    binary::{Output, command, ringfence},
    serve::Coordinator,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use ringfence_coordinator::spawn::{RedisServer, RedisServerBuilder};
use ringfence_test_support::{Deed, Proxy, Servers, Trap, Whose, eventually};
use serde_json::Value;

/// Two new shards with their topology at the first one.
async fn founded() -> Servers {
    founded_on(Servers::spawn(2).await)
}

fn founded_on(servers: Servers) -> Servers {
    let named = servers.urls().join(",");
    let founded = ringfence(&["ring", "init", "--servers-are-new", "--redis", &named]);
    assert_eq!(founded.code, 0, "{founded:?}");
    servers
}

/// `ringfence counter`: a server that lost everything does not know of the other.
fn counter(servers: &Servers, args: &[&str]) -> Output {
    counter_by(["--redis", &servers.urls().join(",")], args)
}

/// `ringfence counter` by that way. Accounts that it creates are in memory, unless `args` choose otherwise.
pub(crate) fn counter_by(way: [&str; 2], args: &[&str]) -> Output {
    let in_memory: &[&str] = match args[0] == "create" && !args.contains(&"--durability") {
        true => &["--durability", "memory"],
        false => &[],
    };
    ringfence(&[&["counter"], args, in_memory, &way].concat())
}

/// As [`counter`], which succeeds.
fn done(servers: &Servers, args: &[&str]) -> Value {
    let output = counter(servers, &[args, &["--json"]].concat());
    assert_eq!(output.code, 0, "{output:?}");
    serde_json::from_str(&output.stdout).expect("an object")
}

fn balance(servers: &Servers, account: &str) -> (String, String) {
    let shown = done(servers, &["balance", account, "--exact"]);
    let amount = |part: &str| shown[part].as_str().expect("a text").to_owned();
    (amount("available"), amount("held"))
}

#[tokio::test]
async fn coins_come_and_go_and_a_repeat_takes_effect_once() {
    let servers = founded().await;
    done(&servers, &["create", "coins/42", "--segments", "3"]);
    done(&servers, &["deposit", "coins/42", "100"]);
    let taken = done(&servers, &["deduct", "coins/42", "30"]);
    let id = taken["request"].as_str().expect("its id");
    let again = done(&servers, &["deduct", "coins/42", "30", "--id", id]);
    assert_eq!(taken, again);
    assert_eq!(taken["balance"], Value::Null, "no segment knows it");
    assert_eq!(balance(&servers, "coins/42"), ("70".into(), "0".into()));

    let told = counter(&servers, &["deduct", "coins/42", "30", "--id", id]);
    assert!(told.stdout.lines().any(|line| line == id), "{told:?}");

    let other = counter(&servers, &["deduct", "coins/42", "31", "--id", id]);
    assert_eq!(other.code, 1, "{other:?}");
    assert!(other.stderr.contains("for another request"), "{other:?}");
    let short = counter(&servers, &["deduct", "coins/42", "71"]);
    assert_eq!(short.code, 1, "{short:?}");
    assert!(short.stderr.contains("insufficient"), "{short:?}");
}

#[tokio::test]
async fn several_accounts_are_paid_or_none() {
    let servers = founded().await;
    done(&servers, &["create", "from", "--segments", "2"]);
    done(&servers, &["create", "shop"]);
    done(&servers, &["deposit", "from", "50"]);
    let pay = ["transfer", "from", "--to", "shop=1", "--to", "fees=2"];
    let refused = counter(&servers, &pay);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("does not exist"), "{refused:?}");
    done(&servers, &["create", "fees"]);
    done(&servers, &pay);
    let held = done(&servers, &["reserve", "from", "10"]);
    let id = held["request"].as_str().expect("its id");
    let confirm = ["confirm", "from", "--id", id];
    let legs = ["--to", "shop=4", "--to", "fees=2"];
    for _ in 0..2 {
        done(&servers, &[&confirm, &legs[..]].concat());
    }
    let held = done(&servers, &["reserve", "from", "10"]);
    let id = held["request"].as_str().expect("its id");
    done(&servers, &["confirm", "from", "--id", id, "--amount", "9"]);
    for (account, has) in [("from", "32"), ("shop", "5"), ("fees", "4")] {
        assert_eq!(balance(&servers, account), (has.into(), "0".into()));
    }
    for (args, words) in [
        (
            &["transfer", "from", "--to", "shop"][..],
            "must be ACCOUNT=AMOUNT",
        ),
        (
            &["transfer", "from", "--to", "shop=1", "--to", "shop=2"],
            "account shop has two legs",
        ),
        (
            &["transfer", "from", "--to", "from=1"],
            "so it cannot receive one",
        ),
    ] {
        let output = counter(&servers, args);
        assert_eq!(output.code, 2, "{args:?}: {output:?}");
        assert!(output.stderr.contains(words), "{args:?}: {output:?}");
    }
}

#[tokio::test]
async fn a_reservation_is_spent_or_comes_back_and_a_transfer_arrives() {
    let servers = founded().await;
    for account in ["from", "to"] {
        done(&servers, &["create", account, "--segments", "2"]);
    }
    done(&servers, &["deposit", "from", "100"]);
    let held = done(&servers, &["reserve", "from", "40"]);
    let id = held["request"].as_str().expect("its id");
    assert_eq!(balance(&servers, "from"), ("60".into(), "40".into()));
    assert_eq!(
        done(&servers, &["confirm", "from", "--id", id])["outcome"],
        "confirmed"
    );
    let late = counter(&servers, &["cancel", "from", "--id", id]);
    assert_eq!(late.code, 1, "{late:?}");
    let held = done(&servers, &["reserve", "from", "40"]);
    let id = held["request"].as_str().expect("its id");
    assert_eq!(
        done(&servers, &["cancel", "from", "--id", id])["outcome"],
        "cancelled"
    );

    done(&servers, &["transfer", "from", "to", "25"]);
    done(&servers, &["resegment", "to", "4"]);
    done(&servers, &["sweep", "to"]);
    assert_eq!(balance(&servers, "from"), ("35".into(), "0".into()));
    assert_eq!(balance(&servers, "to"), ("25".into(), "0".into()));
    let segments = done(&servers, &["show", "to"]);
    assert_eq!(segments["segments"].as_array().expect("a list").len(), 4);

    let nobody = counter(&servers, &["transfer", "from", "nobody", "5"]);
    assert_eq!(nobody.code, 1, "{nobody:?}");
    assert!(nobody.stderr.contains("does not exist"), "{nobody:?}");
    assert_eq!(balance(&servers, "from"), ("35".into(), "0".into()));
    done(&servers, &["close", "to"]);
    let refused = counter(&servers, &["transfer", "from", "to", "5"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(balance(&servers, "from"), ("35".into(), "0".into()));

    for (account, why) in [("from", "close it first"), ("to", "balance is 25")] {
        let refused = counter(&servers, &["delete", account]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
    done(&servers, &["deduct", "to", "25"]);
    for _ in 0..2 {
        done(&servers, &["delete", "to"]);
    }
    assert_eq!(counter(&servers, &["balance", "to"]).code, 1);
}

#[tokio::test]
async fn an_id_tells_what_was_decided() {
    let servers = founded().await;
    for account in ["coins", "closed"] {
        done(&servers, &["create", account]);
    }
    done(&servers, &["deposit", "coins", "100"]);
    let find = |id: &str| done(&servers, &["find", "coins", id]);
    let at = done(&servers, &["deposit", "coins", "1"])["request"].clone();
    let (time, _) = at
        .as_str()
        .and_then(|id| id.split_once(':'))
        .expect("an id");
    // Names as customers choose them.
    let [bought, held, moved] =
        ["order.7:b@é", "held", "moved"].map(|name| format!("{time}:{name}"));
    assert_eq!(find(&bought)["outcome"], "never seen");
    done(&servers, &["deduct", "coins", "30", "--id", &bought]);
    let found = find(&bought);
    assert_eq!(found["outcome"], "applied");
    assert_eq!(found["request"], bought);
    done(&servers, &["reserve", "coins", "5", "--id", &held]);
    let found = find(&held);
    assert_eq!(
        (&found["outcome"], &found["amount"]),
        (&"open".into(), &"5".into())
    );
    done(&servers, &["cancel", "coins", "--id", &held]);
    let found = find(&held);
    assert_eq!(
        (&found["outcome"], &found["state"]),
        (&"refused".into(), &"cancelled".into())
    );
    done(&servers, &["close", "closed"]);
    counter(
        &servers,
        &["transfer", "coins", "closed", "5", "--id", &moved],
    );
    assert_eq!(find(&moved)["state"], "returned");

    let told = counter(&servers, &["find", "coins", &format!("{time}:never")]);
    assert_eq!(told.code, 0, "{told:?}");
    let advice = format!("ringfence counter cancel coins --id {time}:never");
    assert!(
        told.stdout.starts_with("never seen: ") && told.stdout.contains(&advice),
        "{told:?}"
    );
    let nobody = counter(&servers, &["find", "nobody", &bought]);
    assert_eq!(nobody.code, 1, "{nobody:?}");
    let more = counter(&servers, &["find", "coins", &format!("{bought} and")]);
    assert_eq!(more.code, 2, "{more:?}");
    assert!(more.stderr.contains("more copied than the id"), "{more:?}");
}

#[tokio::test]
async fn the_log_of_an_account_is_read_page_by_page() {
    let servers = founded().await;
    done(&servers, &["create", "coins"]);
    done(&servers, &["create", "shop", "--log-max", "0"]);
    let gift = done(&servers, &["deposit", "coins", "100"]);
    done(&servers, &["deduct", "coins", "30"]);
    done(&servers, &["transfer", "coins", "shop", "20"]);
    let page = done(&servers, &["history", "coins"]);
    let effects = page["effects"].as_array().expect("a list");
    let told = |name: &str| -> Vec<&str> {
        let values = effects.iter().map(|effect| &effect[name]);
        values
            .map(|value| value.as_str().unwrap_or_default())
            .collect()
    };
    assert_eq!(
        told("effect"),
        ["deposited", "deducted", "sent", "delivered"]
    );
    assert_eq!(told("available"), ["100", "70", "50", "50"]);
    assert_eq!(told("held"), ["0", "0", "20", "0"]);
    assert_eq!(told("counterpart"), ["", "", "shop", "shop"]);
    assert_eq!(effects[0]["request"], gift["request"]);
    let next = page["next"].as_str().expect("a cursor");
    let rest = done(&servers, &["history", "coins", "--after", next]);
    assert_eq!(rest["effects"].as_array().expect("a list").len(), 0);
    let brief = done(&servers, &["history", "coins", "--since", "1h"]);
    assert_eq!(brief["effects"], page["effects"]);
    let shown = counter(&servers, &["history", "coins"]);
    let lines: Vec<_> = shown.stdout.lines().collect();
    assert!(
        lines.len() == 5 && lines[3].contains("to shop"),
        "{shown:?}"
    );
    let unlogged = counter(&servers, &["history", "shop"]);
    assert!(unlogged.stderr.contains("keeps no log"), "{unlogged:?}");
    assert_eq!(unlogged.code, 1);
    let wrong = counter(&servers, &["history", "coins", "--after", "x"]);
    assert_eq!(wrong.code, 2);
}

#[tokio::test]
async fn limits_units_labels_and_references_are_kept_and_shown() {
    let servers = founded().await;
    let limits = ["--floor", "-10", "--ceiling", "5", "--unit", "EUR-cent"];
    done(&servers, &[&["create", "euros"][..], &limits].concat());
    done(&servers, &["create", "coins"]);
    let uuid = "0190163d-8694-739b-aea5-966c26f8ad91";
    let taken = done(&servers, &["deduct", "euros", "4", "--reference", uuid]);
    let after = serde_json::json!({"ledger": "-4", "available": "6", "held": "0"});
    assert_eq!(taken["balance"], after);
    let log = done(&servers, &["history", "euros"]);
    assert_eq!(log["effects"][0]["reference"], uuid.replace('-', ""));
    let shown = counter(&servers, &["deposit", "euros", "1"]);
    assert!(
        shown.stdout.contains("7 to spend, 0 set aside"),
        "{shown:?}"
    );
    let balance = counter(&servers, &["balance", "euros"]);
    assert!(balance.stdout.contains("the balance is -3"), "{balance:?}");
    for (args, words) in [
        (&["deposit", "euros", "9"][..], "at most 5"),
        (&["transfer", "euros", "coins", "1"], "nothing was deducted"),
        (&["resegment", "euros", "2"], "the account has a ceiling"),
    ] {
        let refused = counter(&servers, args);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    done(&servers, &["label", "euros", "owner=7", "tier=a=b"]);
    done(&servers, &["label", "euros", "owner="]);
    let shown = done(&servers, &["show", "euros"]);
    let labels = serde_json::json!({"tier": "a=b"});
    assert_eq!(
        (&shown["labels"], &shown["floor"]),
        (&labels, &"-10".into())
    );
    let shown = counter(&servers, &["show", "euros"]).stdout;
    let head = "unit: EUR-cent\nfloor: -10\nceiling: 5\nlabel tier=a=b\n";
    assert!(shown.starts_with(head), "{shown}");
    let listed = done(&servers, &["list", "--prefix", "euros"]);
    assert_eq!(listed["accounts"][0]["labels"], labels);
}

#[tokio::test]
async fn odd_names_of_requests_are_printed_in_quotes_and_read_again() {
    let servers = founded().await;
    done(&servers, &["create", "coins"]);
    let begun = done(&servers, &["deposit", "coins", "1"]);
    let begun = begun["request"].as_str().expect("its id");
    let (time, _) = begun.split_once(':').expect("a time");
    for name in ["order 7.", "\"", "a\nb", "x:"] {
        let id = format!("{time}:{}", Value::from(name));
        let made = done(&servers, &["deposit", "coins", "1", "--id", &id]);
        assert_eq!(made["request"], *id);
        let found = done(&servers, &["find", "coins", &id]);
        assert_eq!(found["outcome"], "applied");
        assert_eq!(found["request"], *id);
    }
    let log = done(&servers, &["history", "coins"]);
    assert_eq!(log["effects"][1]["request"], format!("{time}:\"order 7.\""));
    let plain = format!("{time}:a.b@c:d\u{20ac}");
    let made = done(&servers, &["deposit", "coins", "1", "--id", &plain]);
    assert_eq!(made["request"], *plain);
    let wrong = counter(&servers, &["deposit", "coins", "1", "--id", "1:\"a"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

/// How many accounts with the prefix are accepted, and how many not.
fn accept_all(way: [&str; 2], prefix: &str) -> [u64; 2] {
    let accepted = counter_by(way, &["accept", "--all", "--prefix", prefix, "--json"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    let accepted: Value = serde_json::from_str(&accepted.stdout).expect("an object");
    ["accounts", "failed"].map(|count| accepted[count].as_u64().expect("a number"))
}

#[tokio::test]
async fn accounts_are_listed_by_what_they_need_and_accepted_together() {
    let mut servers = founded().await;
    for nth in 0..12 {
        let name = format!("coins/{nth}");
        done(&servers, &["create", &name, "--segments", "2"]);
        done(&servers, &["deposit", &name, "100"]);
    }
    done(&servers, &["create", "stock", "--segments", "2"]);
    done(&servers, &["reserve", "coins/3", "40"]);
    // Segmented locks have manifests, too.
    let list = |servers: &Servers, args: &[&str]| {
        let listed = done(servers, &[&["list"], args].concat());
        let accounts = listed["accounts"].as_array().expect("a list").clone();
        let name = |account: &Value| account["account"].as_str().expect("a name").to_owned();
        let names: Vec<String> = accounts.iter().map(name).collect();
        (names, accounts)
    };
    let (names, accounts) = list(&servers, &[]);
    assert_eq!((names.len(), &*names[12]), (13, "stock"));
    let three = accounts
        .iter()
        .find(|account| account["account"] == "coins/3");
    let three = three.expect("it is listed");
    assert_eq!(
        (&three["available"], &three["held"]),
        (&"60".into(), &"40".into())
    );
    assert_eq!(
        list(&servers, &["--prefix", "coins/1"]).0,
        ["coins/1", "coins/10", "coins/11"]
    );
    assert_eq!(list(&servers, &["--held"]).0, ["coins/3"]);
    let none: [&str; 0] = [];
    assert_eq!(list(&servers, &["--in-doubt", "--lost"]).0, none);
    let few = done(&servers, &["list", "--limit", "5"]);
    assert_eq!(
        (few["accounts"].as_array().map(Vec::len), &few["left_off"]),
        (Some(5), &8.into())
    );

    // Its manifests are gone, and the copies of them are at the other one.
    servers.servers[1].kill();
    servers.servers[1].restart().await.unwrap();
    eventually("those that lost something are listed", async || {
        let (names, _) = list(&servers, &[]);
        let (lost, _) = list(&servers, &["--lost", "--in-doubt"]);
        names.len() == 13 && lost.len() == 13
    })
    .await;
    let coordinator = Coordinator::start(&servers, "");
    let urls = servers.urls().join(",");
    for (way, prefix, count) in [
        (["--coordinator", &coordinator.url], "coins/1", 3),
        (["--redis", &urls], "coins/", 9),
    ] {
        assert_eq!(accept_all(way, prefix), [count, 0]);
        for account in ["coins/1", "coins/10", "coins/11"] {
            done(&servers, &["deposit", account, "1"]);
        }
    }
    assert_eq!(list(&servers, &["--lost", "--in-doubt"]).0, ["stock"]);
    assert_eq!(accept_all(["--redis", &urls], "coins/"), [0, 0]);
    assert_eq!(
        done(&servers, &["sweep", "--all", "--prefix", "coins/"])["accounts"],
        12
    );
    // What it had may have been lost.
    done(&servers, &["deposit", "coins/3", "1"]);
    done(&servers, &["deduct", "coins/3", "1"]);
    let both = counter(&servers, &["accept", "stock", "--all"]);
    assert_eq!(both.code, 2, "{both:?}");
}

#[tokio::test]
async fn failures_give_the_reason_and_the_next_step() {
    let mut servers = founded().await;
    done(&servers, &["create", "coins"]);
    for (args, code, words) in [
        (
            &["deduct", "coins", "0"][..],
            2,
            "amount is 0, must be 1 to",
        ),
        (&["deduct", "coins", "-1"], 2, ""),
        (
            &["deposit", "coins", "9223372036854775808"],
            2,
            "must be 1 to",
        ),
        (
            &["deduct", "coins", "1", "--id", "order-7"],
            2,
            "MILLISECONDS:NAME",
        ),
        (&["deduct", "nobody", "1"], 1, "does not exist"),
        (
            &["create", "none", "--segments", "0"],
            2,
            "must be 1 to 1024",
        ),
        (&["resegment", "coins", "0"], 2, "must be 1 to 1024"),
        (
            &["create", "coins", "--segments", "5"],
            1,
            "number of segments is 1, not 5",
        ),
        (
            &["deduct", "coins", "1", "--id", "1:order-7)"],
            2,
            "more copied than the id",
        ),
        (
            &["deduct", "coins", "1", "--id", "1:order-7."],
            2,
            "more copied than the id",
        ),
        (
            &["transfer", "coins", "coins", "1"],
            2,
            "must be two accounts",
        ),
        (
            &["create", "much", "--segments", "1025"],
            2,
            "must be 1 to 1024",
        ),
        (
            &["create", "much", "--durability", "some"],
            2,
            "memory, disk, or replicas:N",
        ),
        (
            &["create", "safe", "--durability", "disk"],
            69,
            "appendfsync always",
        ),
    ] {
        let output = counter(&servers, args);
        assert_eq!(output.code, code, "{args:?}: {output:?}");
        assert!(output.stderr.contains(words), "{args:?}: {output:?}");
    }
    servers.servers[1].kill();
    // Which asks every segment.
    let away = counter(&servers, &["balance", "coins"]);
    assert_eq!(away.code, 69, "{away:?}");
}

#[tokio::test]
async fn a_repeat_of_what_was_done_is_never_told_that_it_was_not() {
    let mut servers = founded().await;
    done(&servers, &["create", "coins", "--segments", "8"]);
    done(&servers, &["deposit", "coins", "100"]);
    let mut ids = Vec::new();
    for _ in 0..6 {
        let taken = done(&servers, &["deduct", "coins", "1"]);
        ids.push(taken["request"].as_str().expect("its id").to_owned());
    }
    servers.servers[1].kill();
    let failed = |args: &[&str]| Some(counter(&servers, args)).filter(|output| output.code != 0);
    let again = |id: &String| failed(&["deduct", "coins", "1", "--id", id]);
    let again = ids
        .iter()
        .find_map(again)
        .expect("one is at the dead shard");
    assert_eq!(again.code, 75, "{again:?}");
    let words = "nothing was done by this attempt, but an earlier one may have done it";
    assert!(again.stderr.contains(words), "{again:?}");
    // A new request cannot have been done.
    let new = (0..64).find_map(|_| failed(&["deduct", "coins", "1"]));
    let new = new.expect("one is at the dead shard");
    assert_eq!(new.code, 69, "{new:?}");
    let words = "nothing was done by this attempt: repeat it";
    assert!(new.stderr.contains(words), "{new:?}");
    // The reservation may have been asked for by another process.
    let unknown = failed(&["confirm", "coins", "--id", "1:never"]).expect("it is not known");
    assert_eq!(unknown.code, 75, "{unknown:?}");
}

/// The server that has the manifest of `coins`, or the other one.
async fn server_of_manifest(servers: &Servers, has_it: bool) -> usize {
    let manifests: Vec<String> = servers.ask(0, &["KEYS", "*coins:manifest"]).await;
    usize::from(manifests.is_empty() == has_it)
}

/// An account of 4 segments on two servers, with 8 in each, all swept.
async fn swept(
    durability: &str,
    server: impl Fn(RedisServerBuilder) -> RedisServerBuilder,
) -> Servers {
    let servers = founded_on(Servers::spawn_with(2, server).await);
    let create = [
        "create",
        "coins",
        "--segments",
        "4",
        "--durability",
        durability,
    ];
    done(&servers, &create);
    done(&servers, &["deposit", "coins", "100"]);
    for _ in 0..64 {
        done(&servers, &["deduct", "coins", "1"]);
    }
    done(&servers, &["sweep", "coins"]);
    servers
}

fn lost(shown: &Value) -> Vec<u64> {
    let lost = shown["lost"].as_array().expect("a list");
    lost.iter()
        .map(|lost| lost["index"].as_u64().expect("a number"))
        .collect()
}

#[tokio::test]
#[ignore = "long: restarts and recovery periods"]
async fn a_server_that_restarts_with_nothing_costs_its_money_and_not_the_account() {
    let mut servers = swept("memory", |server| server).await;
    let before = done(&servers, &["show", "coins"]);
    let gone = server_of_manifest(&servers, false).await;
    servers.servers[gone].kill();
    servers.servers[gone].restart().await.unwrap();

    let shown = done(&servers, &["show", "coins"]);
    let lost = lost(&shown);
    assert_eq!(lost.len(), 2, "{shown}");
    let owned = |shown: &Value, index: &u64| {
        let at = |segment: &&Value| segment["index"] == *index;
        let segment = shown["segments"].as_array().unwrap().iter().find(at);
        segment.map(|segment| segment["value"].as_str().unwrap().parse::<i64>().unwrap())
    };
    let mut was_lost = 0;
    for (index, told) in lost.iter().zip(shown["lost"].as_array().unwrap()) {
        let was = owned(&before, index).unwrap();
        assert_eq!(told["last_seen"]["owned"], was.to_string(), "{shown}");
        was_lost += was;
    }
    let left = (36 - was_lost).to_string();
    let balanced = done(&servers, &["balance", "coins", "--exact"]);
    assert_eq!(
        (&balanced["available"], &balanced["lost"]),
        (&left.as_str().into(), &2.into())
    );
    let told = counter(&servers, &["show", "coins"]);
    assert!(
        told.stdout.contains("ringfence counter accept coins"),
        "{told:?}"
    );
    for args in [
        &["create", "coins", "--segments", "4"][..],
        &["resegment", "coins", "5"],
        &["sweep", "coins"],
    ] {
        let said = counter(&servers, args);
        assert_eq!(said.code, 69, "{args:?}: {said:?}");
        let words = format!("lost segments {} (", lost[0]);
        assert!(said.stderr.contains(&words), "{args:?}: {said:?}");
    }
    let short = counter(&servers, &["deduct", "coins", "100"]);
    assert_eq!(short.code, 69, "{short:?}");
    assert!(short.stderr.contains("lost segment"), "{short:?}");
    // Some requests are at home at a segment that is there.
    let served = (0..64).map(|_| counter(&servers, &["deposit", "coins", "1"]));
    let served: Vec<_> = served.collect();
    let count = served.iter().filter(|output| output.code == 0).count();
    assert!(count > 0 && count < 64, "{count}: {served:?}");
    assert!(served.iter().all(|output| [0, 69].contains(&output.code)));

    let accepted = counter(&servers, &["accept", "coins"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert!(
        accepted.stdout.contains("coins lost segments"),
        "{accepted:?}"
    );
    let all = 36 - was_lost + count as i64;
    let balanced = done(&servers, &["balance", "coins", "--exact"]);
    assert_eq!(balanced["available"], all.to_string());
    assert_eq!(
        (&balanced["losses"], &balanced["lost"]),
        (&2.into(), &0.into())
    );
    for _ in 0..16 {
        done(&servers, &["deposit", "coins", "1"]);
    }
    done(&servers, &["resegment", "coins", "5"]);
    done(&servers, &["sweep", "coins"]);
    done(&servers, &["create", "coins", "--segments", "5"]);
    done(&servers, &["deduct", "coins", &(all + 16).to_string()]);
    assert_eq!(balance(&servers, "coins").0, "0");
}

#[tokio::test]
async fn an_account_whose_manifest_is_gone_with_its_server_is_there_for_every_command() {
    let mut servers = swept("memory", |server| server).await;
    let gone = server_of_manifest(&servers, true).await;
    servers.servers[gone].kill();
    servers.servers[gone].restart().await.unwrap();
    assert_eq!(lost(&done(&servers, &["show", "coins"])).len(), 2);
    for args in [
        &["create", "coins", "--segments", "4"][..],
        &["sweep", "coins"],
    ] {
        let said = counter(&servers, args);
        assert_eq!(said.code, 69, "{said:?}");
        assert!(said.stderr.contains("coins lost segments"), "{said:?}");
    }
    let left = balance(&servers, "coins").0;
    done(&servers, &["accept", "coins"]);
    assert_eq!(balance(&servers, "coins").0, left);
    let balanced = done(&servers, &["balance", "coins", "--exact"]);
    assert_eq!(
        (&balanced["losses"], &balanced["lost"]),
        (&2.into(), &0.into())
    );
}

#[tokio::test]
async fn an_account_on_disks_of_which_one_is_gone_waits_for_a_person() {
    let synced =
        |server: RedisServerBuilder| server.set("appendonly", "yes").set("appendfsync", "always");
    let mut servers = swept("disk", synced).await;
    let gone = server_of_manifest(&servers, false).await;
    let server = &mut servers.servers[gone];
    server.kill();
    std::fs::remove_dir_all(server.dir().join("appendonlydir")).unwrap();
    server.restart().await.unwrap();
    for args in [
        &["balance", "coins"][..],
        &["deduct", "coins", "100"],
        &["create", "coins", "--durability", "disk"],
    ] {
        let said = counter(&servers, args);
        assert_eq!(said.code, 69, "{args:?}: {said:?}");
        assert!(said.stderr.contains("lost segment"), "{args:?}: {said:?}");
    }
    done(&servers, &["accept", "coins"]);
    let all = balance(&servers, "coins").0;
    done(&servers, &["deduct", "coins", &all]);
    let balanced = done(&servers, &["balance", "coins", "--exact"]);
    assert_eq!(
        (&balanced["losses"], &balanced["lost"]),
        (&2.into(), &0.into())
    );
}

#[tokio::test]
async fn a_reservation_that_has_ended_is_a_failure() {
    let servers = founded().await;
    done(&servers, &["create", "coins", "--segments", "1"]);
    done(&servers, &["deposit", "coins", "10"]);
    let never = counter(&servers, &["reserve", "coins", "4", "--for", "0s"]);
    assert_eq!(never.code, 2, "{never:?}");
    assert!(never.stderr.contains("--for is 0s"), "{never:?}");
    let held = done(&servers, &["reserve", "coins", "4"]);
    let id = held["request"].as_str().expect("its id");
    done(&servers, &["cancel", "coins", "--id", id]);
    let again = counter(&servers, &["reserve", "coins", "4", "--id", id]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.contains("already cancelled"), "{again:?}");
    // It expires, perhaps before the answer.
    let reserve = ["reserve", "coins", "4", "--for", "1ms"];
    let held = counter(&servers, &[&reserve[..], &["--json"]].concat());
    let id = match held.code {
        0 => {
            let held: Value = serde_json::from_str(&held.stdout).expect("an object");
            held["request"].as_str().expect("its id").to_owned()
        }
        _ => return assert!(held.stderr.contains("already expired"), "{held:?}"),
    };
    let repeat = [&reserve[..], &["--id", &id]].concat();
    eventually("it expires", async || {
        let again = counter(&servers, &repeat);
        again.code == 1 && again.stderr.contains("already expired")
    })
    .await;
}

#[tokio::test]
async fn an_account_in_a_namespace_with_replicas_is_refused() {
    let servers = Servers::spawn(3).await;
    let named = servers.urls().join(",");
    let init = [
        "ring",
        "init",
        "--servers-are-new",
        "--namespace",
        "ledger=3",
    ];
    let founded = ringfence(&[&init[..], &["--redis", &named]].concat());
    assert_eq!(founded.code, 0, "{founded:?}");
    let refused = counter(&servers, &["create", "coins", "--namespace", "ledger"]);
    assert_eq!(refused.code, 69, "{refused:?}");
    let words = "namespace ledger is for locks with replicas";
    assert!(refused.stderr.contains(words), "{refused:?}");
    done(&servers, &["create", "coins"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_interrupted_after_its_effect_names_its_id() {
    let server = RedisServer::spawn().await.unwrap();
    let proxy = Proxy::start(server.port()).await;
    let way = ["--redis", &proxy.url()];
    let done = |args: &[&str]| {
        let output = counter_by(way, args);
        assert_eq!(output.code, 0, "{output:?}");
        output.stdout
    };
    let founded = ringfence(&[&["ring", "init", "--servers-are-new"], &way[..]].concat());
    assert_eq!(founded.code, 0, "{founded:?}");
    done(&["create", "coins"]);
    done(&["deposit", "coins", "10"]);
    let before = done(&["balance", "coins", "--exact"]);
    // The manifest is read first.
    for nth in 2..8 {
        let lost = Trap::new(Whose::lane("counters"), Deed::LoseReplies);
        proxy.trap(lost.command(&["FCALL"]).nth(nth));
        let mut deduct = command(&[&["counter", "deduct", "coins", "1"], &way[..]].concat());
        let deduct = deduct.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut deduct = deduct.spawn().unwrap();
        let sprung = proxy.sprung();
        let is_lost = async || proxy.sprung() > sprung;
        eventually("a reply is lost", is_lost).await;
        if done(&["balance", "coins", "--exact"]) == before {
            deduct.kill().unwrap();
            deduct.wait().unwrap();
            proxy.heal();
            continue;
        }
        kill(Pid::from_raw(deduct.id() as i32), Signal::SIGINT).unwrap();
        let ended = deduct.wait_with_output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(75), "{told}");
        assert!(told.contains("repeat it with this --id"), "{told}");
        return;
    }
    panic!("the deduction has no effect");
}
