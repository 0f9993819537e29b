// Reduces GitHub's API description, which takes a minute to load, to the used paths and their references.
// Undescribed fields are forbidden in the result, because a misspelt name would otherwise be accepted.
//
//   node forge-contract-trim.mjs WHOLE.json SMALL.json
import { readFileSync, writeFileSync } from 'node:fs';

const repository = '/repos/{owner}/{repo}';
const used = {
  '': ['get'],
  '/pulls': ['get', 'post'],
  '/pulls/{pull_number}': ['get', 'patch'],
  '/pulls/{pull_number}/merge': ['put'],
  '/pulls/{pull_number}/requested_reviewers': ['post'],
  '/issues/{issue_number}/labels': ['post'],
  '/issues/{issue_number}/events': ['get'],
  '/issues/{issue_number}/comments': ['post'],
  '/commits/{ref}/check-runs': ['get'],
  '/commits/{ref}/status': ['get'],
};

const [, , from, to] = process.argv;
const whole = JSON.parse(readFileSync(from, 'utf8'));

const found = (ref) => ref.slice(2).split('/').reduce((part, name) => part[name], whole);
const resolved = (part) => (part.$ref ? found(part.$ref) : part);

// Forbids undescribed fields; each alternative has only its own.
function strict(schema) {
  for (const one of schema.oneOf ?? schema.anyOf ?? [schema]) {
    if (one.properties) one.additionalProperties = false;
  }
}

// Removes the schema of a response with examples: GitHub's own examples violate its schemas, and only
// requests are checked.
function exampleOnly(response) {
  for (const content of Object.values(response.content ?? {})) {
    if (content.examples) delete content.schema;
  }
  return response;
}

const paths = {};
for (const [rest, methods] of Object.entries(used)) {
  const path = repository + rest;
  if (!whole.paths[path]) throw new Error(`GitHub does not describe ${path}`);
  paths[path] = {};
  for (const method of methods) {
    const operation = whole.paths[path][method];
    if (!operation) throw new Error(`GitHub does not describe ${method} ${path}`);
    operation.parameters = (operation.parameters ?? []).map(resolved);
    for (const content of Object.values(operation.requestBody?.content ?? {})) strict(content.schema);
    for (const [status, response] of Object.entries(operation.responses)) {
      operation.responses[status] = exampleOnly(resolved(response));
    }
    paths[path][method] = operation;
  }
}

// References of the paths, followed recursively.
const components = {};
const waiting = [paths];
while (waiting.length > 0) {
  const part = waiting.pop();
  for (const [name, value] of Object.entries(part)) {
    if (name === '$ref' && typeof value === 'string') {
      const [, , kind, key] = value.split('/');
      components[kind] ??= {};
      if (!(key in components[kind])) {
        components[kind][key] = found(value);
        waiting.push(components[kind][key]);
      }
    } else if (value !== null && typeof value === 'object') {
      waiting.push(value);
    }
  }
}
const { openapi, info } = whole;
writeFileSync(to, JSON.stringify({ openapi, info, servers: [{ url: 'https://api.github.com' }], paths, components }));
