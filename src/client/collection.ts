import { byCursor, type ListOptions } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** The calls that every collection has. @param listed the member of a page with its entries @param read gets one */
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
