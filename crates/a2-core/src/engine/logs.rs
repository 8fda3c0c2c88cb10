//! Log cursors: when they are made, and when they move.

use super::{HeadStatus, LogRow, LogState, Tables};
use crate::outcome::WokenLog;
use crate::request::WakeLog;
use crate::{
    Consumer, Cursor, CursorKey, DispatchState, HeadRef, Index, LogDeclaration, LogName, LogTypes,
    Result,
};

/// Brings one log cursor up to date; see [`Store::wake_log`](crate::Store::wake_log).
///
/// # Errors
/// What the tables fail with.
pub fn wake_log<T: Tables>(t: &mut T, request: &WakeLog) -> Result<WokenLog> {
    let log = t.log_state()?;
    let (consumer, declaration) = (request.consumer(), request.declaration());
    let row = touch(t, log, log.head, consumer, declaration)?;
    let cursor = cursor_of(t, log, consumer.clone(), declaration.name().clone(), row)?;
    Ok(WokenLog::new(cursor, log.head, log.clear_index))
}

/// Makes the cursor, or moves it when it is idle, or records the types; writes only what changes.
///
/// `before` is the log before the batch that touches it, `head` the log's head now.
pub(super) fn touch<T: Tables>(
    t: &mut T,
    before: LogState,
    head: Index,
    consumer: &Consumer,
    declaration: &LogDeclaration,
) -> Result<LogRow> {
    let (name, types) = (declaration.name(), declaration.log_types());
    let old = t.log(consumer, name)?;
    let mut row = match &old {
        Some(row) => current(row, before.clear_index),
        None => LogRow {
            position: if declaration.is_backfill() { before.clear_index } else { before.head },
            head: None,
            types: types.clone(),
            last: None,
        },
    };
    row.types = types.clone();
    if row.head.is_none() {
        row.head = next_taken(t, &row.types, row.position, head)?;
        if let Some(index) = row.head {
            t.add_head(&head_ref(consumer, name, index), HeadStatus::Live)?;
        }
    }
    if old.as_ref() != Some(&row) {
        t.put_log(consumer, name, &row)?;
    }
    Ok(row)
}

/// Moves the cursor past `through`, to the first event it takes after that. Its old head's row is
/// gone already.
pub(super) fn advance<T: Tables>(
    t: &mut T,
    consumer: &Consumer,
    name: &LogName,
    mut row: LogRow,
    through: Index,
) -> Result<()> {
    let head = t.log_state()?.head;
    row.position = through;
    row.head = next_taken(t, &row.types, through, head)?;
    t.put_log(consumer, name, &row)?;
    match row.head {
        Some(index) => t.add_head(&head_ref(consumer, name, index), HeadStatus::Live),
        None => Ok(()),
    }
}

/// The row as the lifetime that begins at `clear_index` sees it.
pub(super) fn current(row: &LogRow, clear_index: Index) -> LogRow {
    LogRow {
        position: row.position.max(clear_index),
        head: row.head.filter(|head| *head > clear_index),
        types: row.types.clone(),
        last: row.last.filter(|(index, _)| *index > clear_index),
    }
}

/// The cursor as it is shown.
pub(super) fn cursor_of<T: Tables>(
    t: &mut T,
    log: LogState,
    consumer: Consumer,
    name: LogName,
    row: LogRow,
) -> Result<Cursor> {
    let row = current(&row, log.clear_index);
    let state = match row.head {
        Some(index) => t.head(&head_ref(&consumer, &name, index))?.map(|head| head.state),
        None => None,
    };
    let state: DispatchState = state.unwrap_or_default();
    Ok(Cursor::new(consumer, CursorKey::Log(name), row.position, row.head, state))
}

/// The first event after `after` that the types take, up to the log's head. `after` is never below
/// the clear marker, so an untyped log takes the very next one.
pub(super) fn next_taken<T: Tables>(
    t: &mut T,
    types: &LogTypes,
    after: Index,
    head: Index,
) -> Result<Option<Index>> {
    if after >= head {
        return Ok(None);
    }
    match types.as_only() {
        None => Ok(Some(after.next())),
        Some(types) => t.next_of_types(types, after),
    }
}

fn head_ref(consumer: &Consumer, name: &LogName, index: Index) -> HeadRef {
    HeadRef::new(consumer.clone(), CursorKey::Log(name.clone()), index)
}
