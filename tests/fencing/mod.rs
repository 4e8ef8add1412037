//! The fence checks that we ship, on real servers, and holders that write too late.

mod holder;
mod mariadb;
mod overtaken;
mod postgresql;
mod redis;

use ringfence::Token;

/// What there is at first.
const BALANCE: i64 = 100;

/// A balance that a lock guards, and a check that it is written with.
trait Resource: Sized {
    /// What a process of its own is told, to know which this is.
    const KIND: &str;

    async fn connect(address: &str) -> Self;

    async fn balance(&mut self) -> i64;

    /// The balance, read through the check: nobody before `token` writes any more.
    async fn read(&mut self, token: Token) -> i64;

    /// Whether it was written; not: it was refused, for a greater token has been here.
    async fn write(&mut self, token: Token, balance: i64) -> bool;
}

/// The conditional update, as the page has it.
fn update() -> String {
    let statement = one_line(block("sql"), "UPDATE account\n   SET balance");
    for file in [postgresql::FILE, mariadb::FILE] {
        assert_eq!(one_line(file, "UPDATE account SET balance"), statement);
    }
    statement
}

/// The first block of `language` in the page.
fn block(language: &str) -> &'static str {
    let page = include_str!("../../docs/fencing.md");
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

/// The statement that begins with `beginning`.
fn one_line(text: &str, beginning: &str) -> String {
    let statement = &text[text.find(beginning).unwrap()..];
    let (statement, _) = statement.split_once(';').unwrap();
    statement.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first token is accepted, a repeat too, and a smaller one refused.
async fn keeps_the_greatest<R: Resource>(address: &str) {
    // Doubles do not tell those beyond 2^53 from each other; text does not order 9 and 10.
    let tokens = [
        1,
        9,
        10,
        (1 << 53) - 1,
        1 << 53,
        (1 << 53) + 1,
        (1 << 60) + 1,
        i64::MAX as u64 - 1,
        i64::MAX as u64,
    ];
    let mut resource = R::connect(address).await;
    for (earlier, number) in tokens.into_iter().enumerate() {
        let (token, balance) = (Token::from_number(number), earlier as i64);
        assert!(resource.write(token, balance).await, "{token} is new");
        assert!(resource.write(token, balance).await, "{token}, a repeat");
        assert!(resource.write(token, -balance).await, "{token}, again");
        for behind in tokens[..earlier].iter().copied().map(Token::from_number) {
            let written = resource.write(behind, i64::MAX).await;
            assert!(!written, "{behind} after {token}");
        }
        assert_eq!(resource.balance().await, -balance);
    }
}
