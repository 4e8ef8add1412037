//! The printable form of a command line: an argument may be a URL with a password.

/// `text` without the credentials in any of `arguments`, for any characters.
pub fn redacted(text: &str, arguments: impl IntoIterator<Item = String>) -> String {
    let mut secrets: Vec<(String, String)> = arguments
        .into_iter()
        .flat_map(|argument| parts(&argument))
        .filter_map(|part| Some((without_credentials(&part)?, part)))
        .collect();
    // A list before its members: otherwise the rest of the list would match none.
    secrets.sort_by_key(|(_, part)| std::cmp::Reverse(part.len()));
    let mut shown = text.to_owned();
    for (without, part) in secrets {
        shown = shown.replace(&part, &without);
    }
    shown
}

/// The forms in which an error may repeat an argument: whole, its value alone, or one member of a list.
fn parts(argument: &str) -> Vec<String> {
    let values = argument.split(',').map(str::to_owned);
    let value = argument.split_once('=').map(|(_, value)| value.to_owned());
    values.chain(value).chain([argument.to_owned()]).collect()
}

/// `url` without credentials: not those in front of the host, nor those among the parameters. It may be another text.
pub fn url(url: &str) -> String {
    let (rest, _) = url.split_once('?').unwrap_or((url, ""));
    let without = without_credentials(rest);
    without.unwrap_or_else(|| rest.rsplit('@').next().unwrap_or(rest).to_owned())
}

/// `url` without the text between `//` and the last `@`, and without parameters of which one is a password; if it has
/// any of that.
fn without_credentials(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("//")?;
    let shown = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let shown = match shown.split_once('?') {
        Some((place, parameters)) if parameters.contains("pass=") => place,
        _ => shown,
    };
    (shown != rest).then(|| format!("{scheme}//{shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_left_out_whatever_characters_they_have() {
        for (argument, shown) in [
            ("redis://coin:p@ss@db:1", "'redis://db:1' // a@b"),
            ("redis://coin:p'a \"ss@db:1", "'redis://db:1' // a@b"),
            ("rediss://:s3,cret@db", "'rediss://db' // a@b"),
            ("--redus=redis://c:p@db", "'--redus=redis://db' // a@b"),
            (
                "redis+sentinel://:p@a,b/bank?sentinel_pass=s3cret",
                "'redis+sentinel://a,b/bank' // a@b",
            ),
            (
                "redis+sentinel://a,b/bank?sentinel_pass=s3cret",
                "'redis+sentinel://a,b/bank' // a@b",
            ),
            ("redis://db:1", "'redis://db:1' // a@b"),
        ] {
            let text = format!("'{argument}' // a@b");
            assert_eq!(redacted(&text, [argument.to_owned()]), shown);
        }
    }

    #[test]
    fn a_value_may_be_shown_alone() {
        let argument = "--redis=redis://a:b@c,redis://d:e@f".to_owned();
        let text = "invalid: redis://d:e@f, redis://a:b@c,redis://d:e@f";
        let shown = redacted(text, [argument]);
        for secret in ["a:b", "d:e"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
