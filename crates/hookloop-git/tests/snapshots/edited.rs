//! Trees that are made of another tree by edits.

use hookloop_git::snapshot::TreeEdit;

use crate::fixture::SnapshotFixture;

#[test]
fn an_edited_tree_is_the_tree_of_the_edited_files() {
    let f = SnapshotFixture::new();
    let snapshots = f.snapshots();
    f.write("gone", "1\n");
    f.write("was/directory", "2\n");
    f.write("kept \"quoted\" ü", "3\n");
    let before = snapshots.take().unwrap();
    f.write("script", "#!/bin/sh\n");
    let other = snapshots.take().unwrap();
    let added = snapshots.tree_changes(&before.tree, &other.tree).unwrap();
    assert_eq!(added.len(), 1);
    let script = added[0].to.clone().unwrap();
    let object = script.object.clone();
    let edits = [
        (b"was".to_vec(), TreeEdit::Content { mode: "100644".to_owned(), content: b"x".to_vec() }),
        (b"was/directory".to_vec(), TreeEdit::Remove),
        (b"gone".to_vec(), TreeEdit::Remove),
        (b"new/\"path\"\n".to_vec(), TreeEdit::State(script)),
    ];
    let edited = snapshots.edited_tree(&before.tree, &edits).unwrap();
    for name in ["gone", "was/directory", "script"] {
        std::fs::remove_file(f.top.join(name)).unwrap();
    }
    std::fs::remove_dir(f.top.join("was")).unwrap();
    f.write("was", "x");
    f.write("new/\"path\"\n", "#!/bin/sh\n");
    assert_eq!(snapshots.take().unwrap().tree, edited);
    assert_eq!(snapshots.edited_tree(&edited, &[]).unwrap(), edited);
    assert_eq!(snapshots.contents(&[&object, &object]).unwrap(), [b"#!/bin/sh\n", b"#!/bin/sh\n"]);
    assert!(snapshots.contents(&["0000000000000000000000000000000000000000"]).is_err());
}
