//! Values of options.

use std::time::Duration;

/// A length of time, as `5s`.
pub fn length(text: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(text);
    parsed.map_err(|error| match text.parse::<f64>() {
        Ok(_) => {
            format!("{text} has no unit: write {text}ms, {text}s, {text}m, {text}h or {text}d")
        }
        Err(_) => error.to_string(),
    })
}

/// The members of a list that is separated by commas. A comma that no URL follows belongs to the URL before it, which has
/// several hosts.
pub fn list(text: &str) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    for piece in text.split(',').filter(|piece| !piece.is_empty()) {
        match urls.last_mut() {
            Some(url) if !piece.contains("://") => *url = format!("{url},{piece}"),
            _ => urls.push(piece.to_owned()),
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_have_urls_of_several_sentinels() {
        for (text, urls) in [
            (
                "redis://a,redis://b:1/2,",
                &["redis://a", "redis://b:1/2"][..],
            ),
            (
                "redis+sentinel://a:1,b:2/bank,rediss://c",
                &["redis+sentinel://a:1,b:2/bank", "rediss://c"],
            ),
            ("a,b", &["a,b"]),
            (",", &[]),
        ] {
            assert_eq!(list(text), urls);
        }
    }
}
