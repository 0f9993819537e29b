//! The modules of a target, parsed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use syn::{Attribute, Expr, ExprLit, Item, ItemMod, ItemUse, Lit, Meta, Visibility};

use crate::CheckError;
use crate::code_sizes::FileSize;
use crate::path_mentions::{ModuleMentions, PathMention};
use crate::test_code::{is_test_file, is_test_only, item_attributes};
use crate::use_paths::{UseLeaf, UseName, UsePath, plain, use_leaves};

/// The place of a module in a [`SourceIndex`].
pub type ModuleId = usize;
/// The place of a target in a [`SourceIndex`].
pub type TreeId = usize;

/// A name in a module's namespace.
#[derive(Clone, Debug)]
pub enum NameBinding {
    /// An item that the module defines.
    Own,
    Child(ModuleId),
    /// The path of a `use`.
    Import(UsePath),
}

/// A module with the items that it defines.
pub struct SourceModule {
    pub tree: TreeId,
    pub path: Vec<String>,
    pub parent: Option<ModuleId>,
    pub is_public: bool,
    /// Relative to the workspace.
    pub file: PathBuf,
    pub items: Vec<Item>,
    pub names: HashMap<String, Vec<NameBinding>>,
    pub globs: Vec<UsePath>,
    /// Every path that the module names.
    pub mentions: Vec<PathMention>,
    /// Imports inside of functions. They bind a name where the module itself has none.
    pub local_imports: HashMap<String, Vec<NameBinding>>,
}

impl fmt::Debug for SourceModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "module {} in {}", self.path.join("::"), self.file.display())
    }
}

/// The root of a target.
#[derive(Clone, Debug)]
pub struct TreeRoot {
    /// The crate's name in paths; none for programs and tests, which no other crate can name.
    pub crate_name: Option<String>,
    /// The name in reports.
    pub label: String,
    pub root: ModuleId,
    /// The directory of a product's library or program, where files of tests are left out.
    pub is_product: bool,
}

/// Whether test code is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestCode {
    LeftOut,
    Included,
}

/// The modules of all loaded targets.
#[derive(Debug, Default)]
pub struct SourceIndex {
    pub trees: Vec<TreeRoot>,
    pub modules: Vec<SourceModule>,
    /// Every file that was parsed; one that several targets include is here several times.
    pub files: Vec<FileSize>,
}

/// A target to load.
#[derive(Clone, Debug)]
pub struct TreeSource {
    pub crate_name: Option<String>,
    pub label: String,
    pub file: PathBuf,
    pub is_product: bool,
}

impl SourceIndex {
    /// Parses a target and every module file that it names.
    pub fn load(
        &mut self,
        workspace: &Path,
        source: &TreeSource,
        test_code: TestCode,
    ) -> Result<TreeId, CheckError> {
        let text = read(&source.file)?;
        let directory = source.file.parent().unwrap_or(workspace).to_owned();
        let mut loader =
            TreeLoader { index: self, workspace, test_code, is_product: source.is_product };
        let place = FilePlace { file: source.file.clone(), directory };
        loader.add_tree(source, &place, &text)
    }

    /// Parses a target from text, without files.
    pub fn load_text(&mut self, name: &str, text: &str) -> Result<TreeId, CheckError> {
        let file = PathBuf::from(format!("{name}.rs"));
        let source = TreeSource {
            crate_name: Some(name.to_owned()),
            label: name.to_owned(),
            file: file.clone(),
            is_product: true,
        };
        let workspace = PathBuf::new();
        let mut loader = TreeLoader {
            index: self,
            workspace: &workspace,
            test_code: TestCode::LeftOut,
            is_product: true,
        };
        loader.add_tree(&source, &FilePlace { file, directory: PathBuf::new() }, text)
    }

    pub fn module(&self, id: ModuleId) -> &SourceModule {
        &self.modules[id]
    }

    pub fn tree(&self, id: TreeId) -> &TreeRoot {
        &self.trees[id]
    }

    /// Returns the modules of one target.
    pub fn modules_of(&self, tree: TreeId) -> impl Iterator<Item = ModuleId> + '_ {
        (0..self.modules.len()).filter(move |id| self.modules[*id].tree == tree)
    }
}

fn read(path: &Path) -> Result<String, CheckError> {
    fs::read_to_string(path).map_err(|source| CheckError::Read { path: path.to_owned(), source })
}

/// A file, and the directory in which the files of its child modules are.
struct FilePlace {
    file: PathBuf,
    directory: PathBuf,
}

/// A module that is about to be added.
struct NewModule<'a> {
    path: Vec<String>,
    parent: Option<ModuleId>,
    is_public: bool,
    place: &'a FilePlace,
    items: Vec<Item>,
}

struct TreeLoader<'a> {
    index: &'a mut SourceIndex,
    workspace: &'a Path,
    test_code: TestCode,
    is_product: bool,
}

impl TreeLoader<'_> {
    fn add_tree(
        &mut self,
        source: &TreeSource,
        place: &FilePlace,
        text: &str,
    ) -> Result<TreeId, CheckError> {
        let tree = self.index.trees.len();
        let root = self.index.modules.len();
        self.index.trees.push(TreeRoot {
            crate_name: source.crate_name.clone(),
            label: source.label.clone(),
            root,
            is_product: source.is_product,
        });
        let items = self.parse(&place.file, text)?;
        let module = NewModule { path: Vec::new(), parent: None, is_public: true, place, items };
        self.add_module(tree, module)?;
        Ok(tree)
    }

    fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.workspace).unwrap_or(path).to_owned()
    }

    fn parse(&mut self, path: &Path, text: &str) -> Result<Vec<Item>, CheckError> {
        let syntax = syn::parse_file(text)
            .map_err(|source| CheckError::Parse { path: path.to_owned(), source })?;
        let lines = text.lines().count();
        self.index.files.push(FileSize::of(self.relative(path), lines, &syntax));
        Ok(syntax.items)
    }

    fn add_module(&mut self, tree: TreeId, new: NewModule<'_>) -> Result<ModuleId, CheckError> {
        let id = self.index.modules.len();
        self.index.modules.push(SourceModule {
            tree,
            path: new.path.clone(),
            parent: new.parent,
            is_public: new.is_public,
            file: self.relative(&new.place.file),
            items: Vec::new(),
            names: HashMap::new(),
            globs: Vec::new(),
            mentions: Vec::new(),
            local_imports: HashMap::new(),
        });
        let mut kept = Vec::new();
        for item in new.items {
            if self.test_code == TestCode::LeftOut && is_test_only(item_attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(item) => {
                    self.add_child(tree, id, &new.path, new.place, item)?;
                }
                Item::Use(item) => {
                    self.bind_use(id, &item);
                    kept.push(Item::Use(item));
                }
                item => {
                    if let Some(name) = own_name(&item) {
                        self.bind(id, name, NameBinding::Own);
                    }
                    kept.push(item);
                }
            }
        }
        let found = ModuleMentions::of(&kept, self.test_code == TestCode::Included);
        for leaf in found.local_uses {
            self.bind_local(id, leaf);
        }
        self.index.modules[id].mentions = found.mentions;
        self.index.modules[id].items = kept;
        Ok(id)
    }

    fn add_child(
        &mut self,
        tree: TreeId,
        parent: ModuleId,
        parent_path: &[String],
        place: &FilePlace,
        item: ItemMod,
    ) -> Result<(), CheckError> {
        let name = plain(&item.ident);
        let is_public = matches!(item.vis, Visibility::Public(_));
        let given = path_attribute(&item.attrs);
        let (place, items) = match item.content {
            Some((_, items)) => {
                let directory = place.directory.join(&name);
                (FilePlace { file: place.file.clone(), directory }, items)
            }
            None => {
                let Some(found) = module_place(place, &name, given.as_deref()) else {
                    let path = place.file.clone();
                    return Err(CheckError::NoModuleFile { path, module: name });
                };
                let is_left_out = self.is_product
                    && self.test_code == TestCode::LeftOut
                    && is_test_file(&self.relative(&found.file));
                if is_left_out {
                    return Ok(());
                }
                let text = read(&found.file)?;
                let items = self.parse(&found.file, &text)?;
                (found, items)
            }
        };
        let mut path = parent_path.to_vec();
        path.push(name.clone());
        let new = NewModule { path, parent: Some(parent), is_public, place: &place, items };
        let child = self.add_module(tree, new)?;
        self.bind(parent, name, NameBinding::Child(child));
        Ok(())
    }

    fn bind(&mut self, module: ModuleId, name: String, binding: NameBinding) {
        self.index.modules[module].names.entry(name).or_default().push(binding);
    }

    fn bind_local(&mut self, module: ModuleId, leaf: UseLeaf) {
        let module = &mut self.index.modules[module];
        match leaf.name {
            UseName::Name(name) => {
                let names = module.local_imports.entry(name).or_default();
                names.push(NameBinding::Import(leaf.path));
            }
            UseName::Glob => module.globs.push(leaf.path),
            UseName::Unnamed => {}
        }
    }

    fn bind_use(&mut self, module: ModuleId, item: &ItemUse) {
        for leaf in use_leaves(item) {
            match leaf.name {
                UseName::Name(name) => self.bind(module, name, NameBinding::Import(leaf.path)),
                UseName::Glob => self.index.modules[module].globs.push(leaf.path),
                UseName::Unnamed => {}
            }
        }
    }
}

/// Returns the file of the module `name`, which the file of `place` declares.
fn module_place(place: &FilePlace, name: &str, given: Option<&str>) -> Option<FilePlace> {
    if let Some(given) = given {
        let file = place.file.parent()?.join(given);
        let directory = file.parent()?.to_owned();
        return file.exists().then_some(FilePlace { file, directory });
    }
    let beside = place.directory.join(format!("{name}.rs"));
    let directory = place.directory.join(name);
    if beside.exists() {
        return Some(FilePlace { file: beside, directory });
    }
    let inside = directory.join("mod.rs");
    inside.exists().then_some(FilePlace { file: inside, directory })
}

/// Returns the value of `#[path = "…"]`.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let Meta::NameValue(value) = &found.meta else { return None };
    match &value.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// Returns the name that an item adds to its module, for items other than modules and imports.
pub fn own_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(plain(ident))
}
