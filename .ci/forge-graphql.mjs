// Checks the queries on standard input, a JSON list, against GitHub's GraphQL schema; prints the errors of
// each, as a list of lists.
//
//   node forge-graphql.mjs DIRECTORY-OF-NODE-MODULES
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const schema = `${process.argv[2]}/@octokit/graphql-schema/index.js`;
const { validate } = await import(pathToFileURL(schema));
const queries = JSON.parse(readFileSync(0, 'utf8'));
const wrong = queries.map((query) => {
  try {
    return validate(query).map(String);
  } catch (error) {
    return [String(error)];
  }
});
console.log(JSON.stringify(wrong));
