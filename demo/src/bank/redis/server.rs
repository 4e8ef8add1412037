//! One server of the bank's.

use std::{str::FromStr, sync::LazyLock, time::Duration};

use redis::{
    AsyncConnectionConfig, Cmd, FromRedisValue, Pipeline, RedisError, Script,
    aio::MultiplexedConnection, cmd, pipe,
};
use ringfence_client::Token;
use ringfence_coordinator::shard::redis::Address;
use tokio::task::JoinSet;

use crate::bank::{BankError, Deduction, OpId, Verdict};

/// How long what a run leaves behind stays, if the run dies: longer than any run.
const EXPIRES: Duration = Duration::from_secs(3600);

/// How long an answer may take.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Accounts opened in one command, and lines of the journal read in one.
const PAGE: usize = 5_000;

/// The journal's first line: where it is missing, so are others.
const OPENED: &str = "opened";

static WRITE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../lua/write.lua")));

/// A server, and the names of the bank's keys there.
#[derive(Debug)]
pub(super) struct Server {
    address: String,
    connection: MultiplexedConnection,
    /// Moves the connection's bytes.
    _pumping: JoinSet<()>,
    balances: String,
    tokens: String,
    journal: String,
}

impl Server {
    /// Connects.
    pub(super) async fn connect(url: &str, run: &str) -> Result<Self, BankError> {
        let url = Address::from_str(url).expect("building the client has refused any other");
        let address = url.to_string();
        let failed = |source| BankError::Server {
            address: address.clone(),
            source,
        };
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(RESPONSE_TIMEOUT));
        let (connection, pump) = url.open(config).await.map_err(failed)?;
        let mut pumping = JoinSet::new();
        pumping.spawn(pump);
        let key = |part: &str| format!("ringfence-demo:{run}:{part}");
        let (balances, tokens, journal) = (key("balances"), key("tokens"), key("journal"));
        Ok(Self {
            address,
            connection,
            _pumping: pumping,
            balances,
            tokens,
            journal,
        })
    }

    /// Opens accounts. Every key is there from now on, and has an end.
    pub(super) async fn open(&self, accounts: &[u32], opening: i64) -> Result<(), BankError> {
        let mut opened = pipe();
        let no_token = token_text(Some(Token::default()));
        for page in accounts.chunks(PAGE) {
            let coins: Vec<_> = page.iter().map(|account| (account, opening)).collect();
            let tokens: Vec<_> = page.iter().map(|account| (account, &no_token)).collect();
            opened.hset_multiple(&self.balances, &coins).ignore();
            opened.hset_multiple(&self.tokens, &tokens).ignore();
        }
        opened.rpush(&self.journal, OPENED).ignore();
        for key in [&self.balances, &self.tokens, &self.journal] {
            opened.expire(key, EXPIRES.as_secs() as i64).ignore();
        }
        self.pipeline(&opened).await
    }

    /// Coins in `account`.
    pub(super) async fn read(&self, account: u32) -> Result<i64, BankError> {
        let balance = self
            .query(cmd("HGET").arg(&self.balances).arg(account))
            .await?;
        Option::ok_or_else(balance, || self.gone())
    }

    /// Writes balance, token and journal, in one script.
    pub(super) async fn write(&self, deduction: Deduction) -> Result<Verdict, BankError> {
        let OpId { worker, number } = deduction.op;
        let mut write = WRITE.key(&self.balances);
        write
            .key(&self.tokens)
            .key(&self.journal)
            .arg(deduction.account);
        write
            .arg(format!("{worker} {number}"))
            .arg(token_text(deduction.token));
        write.arg(deduction.before).arg(deduction.after);
        let written = write.invoke_async(&mut self.connection.clone()).await;
        match written.map_err(|error| self.failed(error))? {
            1 => Ok(Verdict::Accepted),
            0 => Ok(Verdict::Fenced),
            -1 => Err(self.gone()),
            other => Err(self.malformed(format!("answer {other}"))),
        }
    }

    /// Puts the balances of its accounts where they belong.
    pub(super) async fn read_balances(
        &self,
        balances: &mut [Option<i64>],
    ) -> Result<(), BankError> {
        let found: Vec<(usize, i64)> = self.query(cmd("HGETALL").arg(&self.balances)).await?;
        for (account, balance) in found {
            let place = balances.get_mut(account);
            *place.ok_or_else(|| self.malformed(format!("account {account}")))? = Some(balance);
        }
        Ok(())
    }

    /// Appends its journal; a bank of so many accounts cannot have others.
    pub(super) async fn read_journal(
        &self,
        accounts: u32,
        journal: &mut Vec<Deduction>,
    ) -> Result<(), BankError> {
        let mut from = 0;
        loop {
            let mut page = cmd("LRANGE");
            page.arg(&self.journal).arg(from).arg(from + PAGE - 1);
            let lines: Vec<String> = self.query(&page).await?;
            if from == 0 && lines.first().is_none_or(|line| line != OPENED) {
                return Err(self.gone());
            }
            for line in lines.iter().skip(usize::from(from == 0)) {
                let deduction = parse(line).filter(|deduction| deduction.account < accounts);
                let malformed = || self.malformed(format!("journal line {line:?}"));
                journal.push(deduction.ok_or_else(malformed)?);
            }
            if lines.len() < PAGE {
                return Ok(());
            }
            from += PAGE;
        }
    }

    /// Deletes everything of the bank's.
    pub(super) async fn delete(&self) -> Result<(), BankError> {
        self.query(cmd("UNLINK").arg(&[&self.balances, &self.tokens, &self.journal]))
            .await
    }

    /// It has not what it was given.
    pub(super) fn gone(&self) -> BankError {
        BankError::Gone(self.address.clone())
    }

    async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, BankError> {
        let answered = command.query_async(&mut self.connection.clone()).await;
        answered.map_err(|error| self.failed(error))
    }

    async fn pipeline(&self, commands: &Pipeline) -> Result<(), BankError> {
        let answered = commands.query_async(&mut self.connection.clone()).await;
        answered.map_err(|error| self.failed(error))
    }

    fn failed(&self, source: RedisError) -> BankError {
        BankError::Server {
            address: self.address.clone(),
            source,
        }
    }

    fn malformed(&self, what: String) -> BankError {
        BankError::Malformed {
            address: self.address.clone(),
            what,
        }
    }
}

/// A token as it is stored: of texts of one length, the greater number is the greater text.
fn token_text(token: Option<Token>) -> String {
    token.map_or_else(|| "-".into(), |token| format!("{:019}", token.get()))
}

/// Reads a line of the journal.
fn parse(line: &str) -> Option<Deduction> {
    let words: Vec<&str> = line.split(' ').collect();
    let [account, worker, number, token, before, after] = words[..] else {
        return None;
    };
    let token = match token {
        "-" => None,
        digits => Some(Token::from_number(digits.parse().ok()?)),
    };
    Some(Deduction {
        account: account.parse().ok()?,
        op: OpId {
            worker: worker.parse().ok()?,
            number: number.parse().ok()?,
        },
        token,
        before: before.parse().ok()?,
        after: after.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// `KEYS[1]`, `ARGV[2]` and so on, as far as `text` says them.
    fn inputs(text: &str) -> BTreeSet<&str> {
        let starts = ["KEYS[", "ARGV["]
            .into_iter()
            .flat_map(|table| text.match_indices(table));
        let input = |(start, _): (usize, &str)| text[start..].split_inclusive(']').next();
        starts.filter_map(input).collect()
    }

    #[test]
    fn the_scripts_header_names_exactly_what_its_body_uses() {
        let (header, body) = include_str!("../lua/write.lua").split_once("]]").unwrap();
        assert_eq!(inputs(header), inputs(body));
    }

    #[test]
    fn a_line_that_is_none_is_refused() {
        for line in [
            super::OPENED,
            "",
            "1 2 3 - 5",
            "1 2 3 - 5 4 3",
            "1 2 3 x 5 4",
        ] {
            assert_eq!(super::parse(line), None, "{line:?}");
        }
    }
}
