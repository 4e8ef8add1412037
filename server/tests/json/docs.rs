//! The examples in docs/http.md, as a person would run them.

use ringfence_server::Roles;
use serde_json::Value;
use tokio::process::Command;

use crate::{access::principal, scene::Scene};

const PAGE: &str = include_str!("../../../docs/http.md");

/// These differ each time.
const FREE: [&str; 5] = ["handle", "token", "validFor", "remaining", "message"];

#[tokio::test]
async fn the_examples_with_curl_do_what_they_say() {
    let scene = Scene::set_with(|config| principal(config, "secret", Roles::all())).await;
    let examples: Vec<_> = PAGE.split("```sh\n").skip(1).map(example).collect();
    assert!(examples.len() >= 5);
    // Each goes on with what those before have set.
    let commands = examples.iter().map(|(commands, _)| *commands);
    let script = commands.collect::<Vec<_>>().join("\necho ---\n");
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new("bash")
        .args(["-euo", "pipefail", "-c"])
        .arg(script.replace("http://127.0.0.1:7420", &scene.url))
        .env("TOKEN", "secret")
        .current_dir(&folder)
        .output();
    let ran = ran.await.unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let said = String::from_utf8(ran.stdout).unwrap();
    let said: Vec<_> = said.split("---\n").collect();
    assert_eq!(said.len(), examples.len(), "{said:#?}");
    for ((commands, shown), said) in examples.iter().zip(said) {
        let (shown, said) = (values(shown), values(said));
        let are_like = shown.len() == said.len() && shown.iter().zip(&said).all(is_like);
        assert!(are_like, "{commands}\n{said:#?}");
    }
}

fn values(text: &str) -> Vec<Value> {
    let values = serde_json::Deserializer::from_str(text).into_iter();
    values.map(Result::unwrap).collect()
}

/// The commands at the beginning of `text`, and what is shown as their answer.
fn example(text: &str) -> (&str, &str) {
    let (commands, rest) = text.split_once("```").unwrap();
    let shown = rest
        .trim_start()
        .strip_prefix("```json\n")
        .expect("an answer follows");
    (commands, shown.split_once("```").unwrap().0)
}

fn is_like((shown, said): (&Value, &Value)) -> bool {
    let (Value::Object(shown), Value::Object(said)) = (shown, said) else {
        return shown == said;
    };
    let is_like = |(name, shown): (&String, _)| {
        let said = said.get(name);
        said.is_some_and(|said| FREE.contains(&&**name) || is_like((shown, said)))
    };
    shown.len() == said.len() && shown.iter().all(is_like)
}
