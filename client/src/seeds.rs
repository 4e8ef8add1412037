//! The URLs of servers, one or many.

/// One URL, or a list of URLs, for [`Builder::servers`](crate::Builder::servers). `Form` is inferred.
pub trait RedisUrls<Form> {
    /// The URLs.
    fn into_urls(self) -> Vec<String>;
}

/// The [form](RedisUrls) of one URL.
#[derive(Debug)]
pub enum OneUrl {}

/// The [form](RedisUrls) of a list of URLs.
#[derive(Debug)]
pub enum UrlList {}

impl RedisUrls<OneUrl> for &str {
    fn into_urls(self) -> Vec<String> {
        vec![self.into()]
    }
}

impl RedisUrls<OneUrl> for String {
    fn into_urls(self) -> Vec<String> {
        vec![self]
    }
}

impl RedisUrls<OneUrl> for &String {
    fn into_urls(self) -> Vec<String> {
        vec![self.clone()]
    }
}

impl<Urls: IntoIterator<Item: Into<String>>> RedisUrls<UrlList> for Urls {
    fn into_urls(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}
