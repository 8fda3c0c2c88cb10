//! Comforts on top of any [`Store`].

use async_trait::async_trait;
use futures_util::{Stream, TryStreamExt, stream};

use crate::outcome::{Appended, Cursors, DeadLetters, Pending, Sessions};
use crate::request::{Append, Page, PageToken, PendingPage, ReadRange};
use crate::{
    Cursor, DispatchedHead, Error, Event, Index, NewEvent, Result, Served, SessionId, Store,
    outcome::{PendingSession, SessionInfo},
};

/// What can be said with the operations of [`Store`], for every store. Nobody implements it.
#[async_trait]
pub trait StoreExt: Store {
    /// Appends one event.
    ///
    /// # Errors
    /// As [`Store::append`].
    async fn append_one(&self, session: &SessionId, event: NewEvent) -> Result<Appended> {
        self.append(session, Append::one(event)?).await
    }

    /// The log's last index.
    ///
    /// # Errors
    /// As [`Store::read`].
    async fn head(&self, session: &SessionId) -> Result<Index> {
        Ok(self.read(session, ReadRange::after(Index::MAX)).await?.head)
    }

    /// Reads everything after `after` that is stored, page by page. If the session is cleared
    /// meanwhile, it goes on at the marker.
    fn read_all<'a>(
        &'a self,
        session: &'a SessionId,
        after: Index,
    ) -> impl Stream<Item = Result<Event>> + Send + 'a
    where
        Self: Sized,
    {
        stream::try_unfold(Some(after), move |after| async move {
            let Some(after) = after else { return Ok::<_, Error>(None) };
            let page = self.read(session, ReadRange::after(after)).await?;
            let next = page.events.last().map(|last| last.index).filter(|last| *last < page.head);
            let events = stream::iter(page.events.into_iter().map(Ok));
            Ok(Some((events, next)))
        })
        .try_flatten()
    }

    /// Every dead letter of the session.
    ///
    /// # Errors
    /// As [`Store::dead_letters`].
    async fn all_dead_letters(&self, session: &SessionId) -> Result<Vec<DispatchedHead>> {
        let (mut all, mut page) = (Vec::new(), Page::first());
        loop {
            let DeadLetters { heads, next } = self.dead_letters(session, page).await?;
            all.extend(heads);
            match next {
                Some(token) => page = Page::at(token),
                None => return Ok(all),
            }
        }
    }

    /// Every cursor of the session.
    ///
    /// # Errors
    /// As [`Store::cursors`].
    async fn all_cursors(&self, session: &SessionId) -> Result<Vec<Cursor>> {
        let (mut all, mut page) = (Vec::new(), Page::first());
        loop {
            let Cursors { cursors, next, .. } = self.cursors(session, page).await?;
            all.extend(cursors);
            match next {
                Some(token) => page = Page::at(token),
                None => return Ok(all),
            }
        }
    }

    /// Every session, page by page.
    fn all_sessions(&self) -> impl Stream<Item = Result<SessionInfo>> + Send + '_
    where
        Self: Sized,
    {
        pages(move |token| async move {
            let page = token.map_or_else(Page::first, Page::at);
            let Sessions { sessions, next } = self.sessions(page).await?;
            Ok((sessions, next))
        })
    }

    /// One pass over the sessions with work, page by page.
    fn all_pending(&self, served: Served) -> impl Stream<Item = Result<PendingSession>> + Send + '_
    where
        Self: Sized,
    {
        pages(move |token| {
            let page = token.map_or_else(Page::first, Page::at);
            let request = PendingPage::new(served.clone()).page(page);
            async move {
                let Pending { sessions, next } = self.pending(request).await?;
                Ok((sessions, next))
            }
        })
    }
}

impl<S: Store + ?Sized> StoreExt for S {}

/// Where a pass over pages is.
enum Place {
    First,
    At(PageToken),
    End,
}

fn pages<T, F, Fut>(mut fetch: F) -> impl Stream<Item = Result<T>> + Send
where
    T: Send,
    F: FnMut(Option<PageToken>) -> Fut + Send,
    Fut: Future<Output = Result<(Vec<T>, Option<PageToken>)>> + Send,
{
    stream::try_unfold(Place::First, move |place| {
        let token = match place {
            Place::First => Some(None),
            Place::At(token) => Some(Some(token)),
            Place::End => None,
        };
        let fetched = token.map(&mut fetch);
        async move {
            let Some(fetched) = fetched else { return Ok::<_, Error>(None) };
            let (items, next) = fetched.await?;
            let place = next.map_or(Place::End, Place::At);
            Ok(Some((stream::iter(items.into_iter().map(Ok)), place)))
        }
    })
    .try_flatten()
}
