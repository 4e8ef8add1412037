//! A bank on Redis servers, as an application of the user's would keep its data.

mod server;

use async_trait::async_trait;

use super::{Bank, BankError, Books, Deduction, Verdict};
use server::Server;

/// A bank on Redis servers. Each has a part of the accounts.
#[derive(Debug)]
pub(crate) struct RedisBank {
    accounts: u32,
    opening: i64,
    servers: Vec<Server>,
}

impl RedisBank {
    /// A bank on the servers at `urls`, under keys named for `run`, of so many accounts with so
    /// many coins each.
    pub(crate) async fn open(
        urls: &[String],
        run: &str,
        (accounts, opening): (u32, i64),
    ) -> Result<Self, BankError> {
        let mut servers = Vec::new();
        for url in urls {
            servers.push(Server::connect(url, run).await?);
        }
        let bank = Self {
            accounts,
            opening,
            servers,
        };
        for (index, server) in (0..).zip(&bank.servers) {
            let its: Vec<u32> = (index..accounts).step_by(bank.servers.len()).collect();
            server.open(&its, opening).await?;
        }
        Ok(bank)
    }

    /// The server that has `account`.
    fn server(&self, account: u32) -> &Server {
        &self.servers[account as usize % self.servers.len()]
    }

    async fn books(&self) -> Result<Books, BankError> {
        let mut balances = vec![None; self.accounts as usize];
        let mut journal = Vec::new();
        for server in &self.servers {
            server.read_balances(&mut balances).await?;
            server.read_journal(self.accounts, &mut journal).await?;
        }
        let there = |(account, balance): (u32, Option<i64>)| {
            balance.ok_or_else(|| self.server(account).gone())
        };
        let balances = (0..).zip(balances).map(there).collect::<Result<_, _>>()?;
        Ok(Books {
            opening: self.opening,
            balances,
            journal,
        })
    }
}

#[async_trait]
impl Bank for RedisBank {
    async fn read(&self, account: u32) -> Result<i64, BankError> {
        self.server(account).read(account).await
    }

    async fn write(&self, deduction: Deduction) -> Result<Verdict, BankError> {
        self.server(deduction.account).write(deduction).await
    }

    async fn close(&self) -> Result<Books, BankError> {
        let books = self.books().await;
        let mut deleted = Ok(());
        for server in &self.servers {
            deleted = deleted.and(server.delete().await);
        }
        let books = books?;
        deleted.map(|()| books)
    }
}
