//! What tools do, against the document that they come from.
