import { useEffect } from 'preact/hooks';
import { accountLogin, login } from '../core/api';
import { writeQuery } from '../core/router';
import { Form, TextField, textIn } from './form';
import { Bell } from './icon';

export default function Login() {
  useEffect(() => {
    document.title = 'Sign in · Tocsin';
  }, []);
  const account = accountLogin.value && new URL(accountLogin.value);
  if (account) writeQuery(account, { return_to: location.pathname + location.search });
  return (
    <main class="login">
      <Bell size={40} />
      <h1>Tocsin</h1>
      {account && (
        <a class="button primary" href={account.href}>
          Sign in with your account
        </a>
      )}
      <Form action="Sign in" onSubmit={(form) => login(textIn(form, 'key'))}>
        <TextField
          name="key"
          label="API key"
          hint="An API key of this deployment. The browser stores it in a cookie that scripts cannot read."
          type="password"
          required
          autocomplete="current-password"
          autofocus
        />
      </Form>
    </main>
  );
}
