//! Real transcripts: every file of a folder is recognised and read. Skipped where there is no such folder.

use std::path::PathBuf;

use rb_wire::transcripts::sniff;

use crate::told::told;

/// `RB_SAMPLES`, or the folder `shared/samples` beside the repository.
fn samples() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    let folder = std::env::var_os("RB_SAMPLES").map_or(beside, PathBuf::from);
    folder.is_dir().then_some(folder)
}

#[test]
fn every_sample_is_read() {
    let Some(folder) = samples() else {
        eprintln!("no folder of samples; set RB_SAMPLES to one");
        return;
    };
    let mut files = 0;
    let kinds =
        std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    for file in kinds
        .filter(|path| path.is_dir())
        .flat_map(|kind| std::fs::read_dir(kind).expect("a folder"))
    {
        let path = file.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a file");
        let importer =
            sniff(&bytes).unwrap_or_else(|| panic!("{} is not recognised", path.display()));
        let found = (importer.parse)(&bytes);
        eprintln!("== {} {}\n{}", path.display(), importer.id, told(&found, 50));
        assert!(!found.1.iter().any(|complaint| complaint.is_loss()), "{}", path.display());
        files += 1;
    }
    assert!(files > 0, "{} holds no files", folder.display());
}
