/** What the contract of each route takes, from the document of the API: the Worker refuses the rest. */

const MEDIA_TYPE = 'application/openjobspec+json';

/**
 * @param document docs/reference/openapi.json
 * @returns {Record<string, { query: string[], body?: Record<string, boolean>, isOpen: boolean }>}
 * by method and path; see src/http/openapi/built.d.ts
 */
export function acceptedIn({ paths, components }) {
  const resolved = (schema) =>
    schema.$ref ? resolved(components.schemas[schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)]) : schema;

  const isNullable = (given) => {
    const { type, anyOf, enum: words, ...others } = resolved(given);
    if (type === undefined && anyOf === undefined && words === undefined) return !('const' in others);
    if (words?.includes(null) || [type].flat().includes('null')) return true;
    return anyOf?.some(isNullable) === true;
  };

  /** Adds the members of a schema, and those of its parts. @returns whether it takes any others too */
  const collect = (given, members) => {
    const { properties = {}, anyOf = [], allOf = [], ...others } = resolved(given);
    for (const [name, member] of Object.entries(properties)) members[name] = isNullable(member);
    const isOpen = [...anyOf, ...allOf].map((part) => collect(part, members)).some(Boolean);
    return isOpen || 'additionalProperties' in others;
  };

  const accepted = ({ parameters = [], requestBody }) => {
    const query = parameters.flatMap(({ name }) => name ?? []);
    const { [MEDIA_TYPE]: json, ...others } = requestBody?.content ?? {};
    if (!json) return { query, isOpen: Object.keys(others).length > 0 };
    const body = {};
    const isOpen = collect(json.schema, body);
    return { query, body, isOpen };
  };

  return Object.fromEntries(
    Object.entries(paths).flatMap(([path, { parameters: _, ...operations }]) =>
      Object.entries(operations).map(([method, operation]) => [`${method} ${path}`, accepted(operation)]),
    ),
  );
}
