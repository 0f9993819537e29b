//! The undo of a session before it is made: the files that change, and the files of a person that stay.

use hookloop_core::id::Subject;
use hookloop_engine::session::undo::FileEffect;
use hookloop_engine::store::SessionRow;
use minijinja::context;
use minijinja::value::Value;

use super::super::actions::parse_turn;
use super::super::page::PagePart;
use super::super::records::lock;
use super::session::{find, last_turn};
use super::{PageTitle, PageVisit};
use crate::error::{CliError, CliResult, FailureKind};
use crate::undo_preview::UndoPreview;

/// Turns that can be chosen, the last ones.
const TURNS_MAX: u32 = 100;

/// No event changes this part: the list stays as it is while its reader decides.
const PREVIEW: PagePart = PagePart::new("preview", "Undo", &[]);

pub(in super::super) fn undo(visit: &PageVisit<'_>) -> CliResult<String> {
    let (row, record) = find(visit)?;
    // The record is not locked while the files are read: other pages show it, too.
    let last = last_turn(&lock(&record).session);
    let mut page = visit.page();
    page.part(PREVIEW, "undo.html", || values(visit, &row, last))?;
    let title = format!("Undo session {}", row.name);
    let subject = Some(Subject::Session(row.id.clone()));
    visit.finish(page, &PageTitle { title: &title, section: "sessions", subject })
}

fn values(visit: &PageVisit<'_>, row: &SessionRow, last: u32) -> CliResult<Value> {
    let chosen = visit.query.get("turn").map(parse_turn).transpose();
    let turn = chosen.as_ref().ok().copied().flatten();
    let (preview, refusal) = match chosen.and_then(|turn| read(visit, row, turn)) {
        Ok(preview) => (Some(shown(&preview)), None),
        Err(error) if error.kind() == FailureKind::System => return Err(error),
        Err(error) => (None, Some(context! { message => error.message(), next => error.tip() })),
    };
    let first = last.saturating_sub(TURNS_MAX - 1).max(1);
    let numbers = (first..=last).filter(|_| last > 1);
    let link = |number: u32| visit.query.with("turn", &number.to_string());
    let turns: Vec<Value> =
        numbers.map(|number| context! { number, link => link(number) }).collect();
    Ok(context! {
        id => row.id.as_str(),
        session_link => visit.address(&format!("sessions/{}", row.id)),
        all_link => visit.query.with("turn", ""),
        action => visit.address("do"),
        is_cut => first > 1,
        turn, turns, preview, refusal,
    })
}

/// Reads the files that the undo would change. Nothing changes.
fn read(visit: &PageVisit<'_>, row: &SessionRow, turn: Option<u32>) -> CliResult<UndoPreview> {
    if let Some(trouble) = &visit.site.trouble {
        return Err(CliError::refused(format!("decisions are disabled: {trouble}")));
    }
    UndoPreview::read(visit.project(), &row.id, turn)
}

fn shown(preview: &UndoPreview) -> Value {
    let files = preview.files.iter().map(|(path, effect)| {
        context! { path, effect => effect.name(), class => class(*effect) }
    });
    let files: Vec<Value> = files.collect();
    let edited = preview.edited.iter();
    let edited: Vec<Value> =
        edited.map(|file| context! { path => &file.path, reason => file.reason }).collect();
    context! {
        more_files => preview.file_count.saturating_sub(files.len()),
        more_edited => preview.edited_count.saturating_sub(edited.len()),
        heading => preview.heading(),
        nothing => preview.nothing(),
        kept => preview.kept(),
        commits => preview.commits(),
        digest => &preview.digest,
        files, edited,
    }
}

fn class(effect: FileEffect) -> &'static str {
    match effect {
        FileEffect::Created => "good",
        FileEffect::Changed => "calm",
        FileEffect::Deleted => "bad",
    }
}
