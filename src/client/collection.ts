import { byCursor, type ListOptions } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/**
 * The calls that every collection has. @param path of the collection @param listed the member of a page that has its
 * entries @param read takes one entry from an answer
 */
export function collection<One, Listed = One>(
  requests: Requests,
  path: string,
  listed: string,
  read: (answer: unknown) => One,
) {
  return {
    list: (options: ListOptions = {}) => byCursor<Listed>(requests.safely, { path, member: listed }, options),
    get: async (id: string) => read(await requests.safely('GET', path + pathTo`/${id}`)),
    delete: async (id: string) => await requests.remove(path + pathTo`/${id}`),
  };
}
