//! CounterService: one call per step.

mod accounts;
mod changes;
mod history;
mod list;
mod messages;

pub(crate) use changes::Changes;
pub(crate) use messages::{durability, id};

use std::time::Duration;

use futures_util::{StreamExt as _, stream::BoxStream};
use ringfence_api::{
    Error,
    v1::{
        AcceptAccountRequest, AcceptAccountResponse, Account, BatchChangeRequest,
        BatchChangeResponse, CancelRequest, CancelResponse, CloseAccountRequest,
        CloseAccountResponse, ConfirmRequest, ConfirmResponse, CreateAccountRequest,
        CreateAccountResponse, DeductRequest, DeductResponse, DeleteAccountRequest,
        DeleteAccountResponse, DepositRequest, DepositResponse, FindRequest, FindResponse,
        GetAccountRequest, GetAccountResponse, GetBalanceRequest, GetBalanceResponse,
        GetHistoryRequest, GetHistoryResponse, LabelAccountRequest, LabelAccountResponse,
        ListAccountsRequest, ListAccountsResponse, ResegmentAccountRequest,
        ResegmentAccountResponse, ReserveRequest, ReserveResponse, SweepAccountRequest,
        SweepAccountResponse, TransferRequest, TransferResponse, change::Request as Change,
        counter_service_server::CounterService,
    },
};
use ringfence_client::Client;
use tonic::{Request, Response, Status};

use self::{
    accounts::Accounts,
    messages::{balance, decision, segments, swept, terms},
};
use crate::{
    access::{Admitted, Audit, Call, admit, caller_of},
    deadline::Deadline,
    errors,
    fields::namespace,
};

/// Segments of an account, unless the request sets another number.
const SEGMENTS: u32 = 1;

/// Serves CounterService.
pub(crate) struct Counters {
    accounts: Accounts,
    numbers: Changes,
}

impl Counters {
    /// Serves counters of `client`, and counts changes in `numbers`.
    pub(crate) fn new(client: Client, numbers: Changes) -> Self {
        Self {
            accounts: Accounts::new(client),
            numbers,
        }
    }
}

/// Lets work on the whole of `account` pass.
fn work<T>(request: &Request<T>, account: &Option<Account>) -> Result<Admitted, Error> {
    let (namespace, name) = named(account);
    admit(request, Call::Change(namespace, name))
}

fn named(account: &Option<Account>) -> (&str, &[u8]) {
    let account = account.as_ref();
    account.map_or(("", &[]), |account| {
        (&account.namespace, account.name.as_bytes())
    })
}

#[tonic::async_trait]
impl CounterService for Counters {
    async fn create_account(
        &self,
        request: Request<CreateAccountRequest>,
    ) -> Result<Response<CreateAccountResponse>, Status> {
        let (namespace, name) = named(&request.get_ref().account);
        let _admitted = admit(&request, Call::Create(namespace, name))?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let segments = match ask.segments {
            0 => SEGMENTS,
            segments => segments,
        };
        let terms = terms(&ask)?;
        let account = ask.account.unwrap_or_default();
        let counters = self.accounts.namespace(&account)?;
        let created = deadline
            .run(counters.create(&account.name, terms, segments))
            .await?;
        created.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(CreateAccountResponse {}))
    }

    async fn deposit(
        &self,
        request: Request<DepositRequest>,
    ) -> Result<Response<DepositResponse>, Status> {
        let (_, balance) = self.change(request.map(Change::Deposit)).await?;
        Ok(Response::new(DepositResponse { balance }))
    }

    async fn deduct(
        &self,
        request: Request<DeductRequest>,
    ) -> Result<Response<DeductResponse>, Status> {
        let (_, balance) = self.change(request.map(Change::Deduct)).await?;
        Ok(Response::new(DeductResponse { balance }))
    }

    async fn get_balance(
        &self,
        request: Request<GetBalanceRequest>,
    ) -> Result<Response<GetBalanceResponse>, Status> {
        let (namespace, name) = named(&request.get_ref().account);
        let _admitted = admit(&request, Call::Read(namespace, name))?;
        let deadline = Deadline::of(&request);
        let GetBalanceRequest { account, exact } = request.into_inner();
        let counter = self.accounts.open(account)?;
        let found = deadline.run(async {
            match exact {
                true => counter.exact_balance().await,
                false => counter.balance().await,
            }
        });
        let found = found.await?.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(balance(found)?))
    }

    async fn reserve(
        &self,
        request: Request<ReserveRequest>,
    ) -> Result<Response<ReserveResponse>, Status> {
        let (state, balance) = self.change(request.map(Change::Reserve)).await?;
        let state = state.into();
        Ok(Response::new(ReserveResponse { state, balance }))
    }

    async fn confirm(
        &self,
        request: Request<ConfirmRequest>,
    ) -> Result<Response<ConfirmResponse>, Status> {
        let (state, balance) = self.change(request.map(Change::Confirm)).await?;
        let state = state.into();
        Ok(Response::new(ConfirmResponse { state, balance }))
    }

    async fn cancel(
        &self,
        request: Request<CancelRequest>,
    ) -> Result<Response<CancelResponse>, Status> {
        let (state, balance) = self.change(request.map(Change::Cancel)).await?;
        let state = state.into();
        Ok(Response::new(CancelResponse { state, balance }))
    }

    async fn transfer(
        &self,
        request: Request<TransferRequest>,
    ) -> Result<Response<TransferResponse>, Status> {
        let (_, balance) = self.change(request.map(Change::Transfer)).await?;
        Ok(Response::new(TransferResponse { balance }))
    }

    async fn batch_change(
        &self,
        request: Request<BatchChangeRequest>,
    ) -> Result<Response<BatchChangeResponse>, Status> {
        let answers = self.change_all(request).await?;
        Ok(Response::new(BatchChangeResponse { answers }))
    }

    async fn find(&self, request: Request<FindRequest>) -> Result<Response<FindResponse>, Status> {
        let (namespace, name) = named(&request.get_ref().account);
        let _admitted = admit(&request, Call::Read(namespace, name))?;
        let deadline = Deadline::of(&request);
        let FindRequest { account, id } = request.into_inner();
        let id = messages::id(id)?;
        let counter = self.accounts.open(account)?;
        let found = deadline.run(counter.find(&id)).await?;
        let found = found.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(decision(found)))
    }

    async fn get_history(
        &self,
        request: Request<GetHistoryRequest>,
    ) -> Result<Response<GetHistoryResponse>, Status> {
        let (namespace, name) = named(&request.get_ref().account);
        let _admitted = admit(&request, Call::Read(namespace, name))?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let (from, limit) = history::range(&ask)?;
        let counter = self.accounts.open(ask.account)?;
        let found = deadline.run(counter.history(&from, limit)).await?;
        let found = found.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(history::answer(found)))
    }

    async fn get_account(
        &self,
        request: Request<GetAccountRequest>,
    ) -> Result<Response<GetAccountResponse>, Status> {
        let (namespace, name) = named(&request.get_ref().account);
        let _admitted = admit(&request, Call::Read(namespace, name))?;
        let deadline = Deadline::of(&request);
        let counter = self.accounts.open(request.into_inner().account)?;
        let found = deadline.run(async {
            let segments = counter.inspect().await?;
            Ok((segments, counter.segments().await.ok()))
        });
        let (found, homes) = found.await?.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(GetAccountResponse {
            homes,
            segments: Some(segments(&found)),
        }))
    }

    type ListAccountsStream = BoxStream<'static, Result<ListAccountsResponse, Status>>;

    async fn list_accounts(
        &self,
        request: Request<ListAccountsRequest>,
    ) -> Result<Response<Self::ListAccountsStream>, Status> {
        let of = namespace(&request.get_ref().namespace);
        let admitted = admit(&request, Call::List(Some(of)))?;
        let (caller, deadline) = (caller_of(&request)?.clone(), Deadline::of(&request));
        let ask = request.into_inner();
        let account = Account {
            namespace: ask.namespace,
            name: String::new(),
        };
        let accounts = self.accounts.namespace(&account)?.list(&ask.prefix);
        let conditions = list::Conditions::of(&ask.conditions)?;
        let pages = list::pages(accounts, (conditions, caller, deadline), admitted);
        Ok(Response::new(pages.boxed()))
    }

    async fn resegment_account(
        &self,
        request: Request<ResegmentAccountRequest>,
    ) -> Result<Response<ResegmentAccountResponse>, Status> {
        let _admitted = work(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let counter = self.accounts.open(ask.account)?;
        let changed = deadline.run(counter.resegment(ask.segments)).await?;
        changed.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(ResegmentAccountResponse {}))
    }

    async fn label_account(
        &self,
        request: Request<LabelAccountRequest>,
    ) -> Result<Response<LabelAccountResponse>, Status> {
        let _admitted = work(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let set = ask.set.into_iter().map(|(name, value)| (name, Some(value)));
        let removed = ask.remove.into_iter().map(|name| (name, None));
        let labels = set.chain(removed).collect();
        let counter = self.accounts.open(ask.account)?;
        let labelled = deadline.run(counter.label(&labels)).await?;
        labelled.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(LabelAccountResponse {}))
    }

    async fn close_account(
        &self,
        request: Request<CloseAccountRequest>,
    ) -> Result<Response<CloseAccountResponse>, Status> {
        let _admitted = work(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let counter = self.accounts.open(request.into_inner().account)?;
        let closed = deadline.run(counter.close()).await?;
        closed.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(CloseAccountResponse {}))
    }

    async fn delete_account(
        &self,
        request: Request<DeleteAccountRequest>,
    ) -> Result<Response<DeleteAccountResponse>, Status> {
        let _admitted = admit(&request, Call::Admin)?;
        let deadline = Deadline::of(&request);
        let counter = self.accounts.open(request.into_inner().account)?;
        let deleted = deadline.run(counter.delete()).await?;
        deleted.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(DeleteAccountResponse {}))
    }

    async fn sweep_account(
        &self,
        request: Request<SweepAccountRequest>,
    ) -> Result<Response<SweepAccountResponse>, Status> {
        let _admitted = work(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let counter = self.accounts.open(request.into_inner().account)?;
        let done = deadline.run(counter.sweep()).await?;
        let done = done.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(swept(&done)))
    }

    async fn accept_account(
        &self,
        request: Request<AcceptAccountRequest>,
    ) -> Result<Response<AcceptAccountResponse>, Status> {
        let _admitted = admit(&request, Call::Admin)?;
        let deadline = Deadline::of(&request);
        let account = request.get_ref().account.as_ref();
        let of =
            account.map(|account| format!("{}/{}", namespace(&account.namespace), account.name));
        let audit = Audit::of(&request, "AcceptAccount", of.unwrap_or_default())?;
        let request = request.into_inner();
        let counter = self.accounts.open(request.account)?;
        let accept = async {
            match request.no_wait {
                true => counter.accept_now().await,
                false => counter
                    .accept()
                    .await
                    .map(|before| (before, Duration::ZERO)),
            }
        };
        let accepted = async {
            let accepted = deadline.run(accept).await?;
            accepted.map_err(|error| errors::counter(&error))
        };
        let (before, until_new) = audit.run(accepted).await?;
        Ok(Response::new(AcceptAccountResponse {
            before: Some(segments(&before)),
            until_new: until_new.try_into().ok(),
        }))
    }
}
