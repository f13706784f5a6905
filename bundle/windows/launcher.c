/* AnonML.exe: starts the peer with the Python beside it, opens its page in the browser, stays as an icon in the tray.

   AnonML.exe                    the page
   AnonML.exe anonml://...       the page, which begins with this link
   AnonML.exe --route socks://HOST:PORT [anonml://...]    the same by a Tor that runs already
   AnonML.exe --register         links that begin with anonml:// open here, for this user alone; --unregister ends that
   AnonML.exe peer run --stay... the peer at login, without a page: the value of the Run key

   One runs at a time. A second one hands its link over and ends. The peer has a console without a window, so that it
   ends in order by Ctrl-C: at "Quit", and when the user logs off. It ends with this program, whatever ends that. */
#include <windows.h>
#include <shellapi.h>
#include <stdlib.h>
#include <wchar.h>

#define NAME L"AnonML"
#define PROGRAM NAME L".exe"
#define CLASSES L"Software\\Classes\\anonml"
#define COMMAND CLASSES L"\\shell\\open\\command"
#define RUN L"Software\\Microsoft\\Windows\\CurrentVersion\\Run"
#define RUN_NAME L"AnonML peer"
#define STAY L" peer run --stay "
#define PAGE "http://127.0.0.1:"
#define UNPACKED L"The folder \"python\" is not beside this program. Take the whole folder out of the zip: Extract All."
#define NO_LINK L"This is no AnonML link. Copy the whole link that begins with anonml:// again."
#define ENDS_WITH_US (JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK)
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
enum { PATH = 32768, LONGEST_LINK = 2000, LONGEST_RUN_VALUE = 260, ORDERLY_MS = 4000 };
enum { TRAY = WM_APP, SAID, ENDED, OPEN_PAGE = 1, AT_LOGIN, LINKS, QUIT, A_LINK = 1, A_NOTICE };

/* A command of the peer, and the end of what it said: UTF-8. */
typedef struct {
    HANDLE process, output;
    BOOL dismissed;
    char said[4096];
    size_t size;
} Task;

static WCHAR own[PATH], folder[PATH], command[PATH], page[LONGEST_LINK], route[300];
static HWND window;
static HANDLE job;
static Task *current;
static BOOL page_wanted;
static NOTIFYICONDATAW icon = {
    .cbSize = sizeof icon, .uID = 1, .uCallbackMessage = TRAY, .szTip = NAME,
    .szInfoTitle = NAME, .dwInfoFlags = NIIF_USER,
};

static int fail(const WCHAR *text) {
    MessageBoxW(NULL, text, NAME, MB_OK | MB_SETFOREGROUND | MB_ICONERROR);
    return 1;
}

static BOOL value_of(const WCHAR *key, const WCHAR *name, WCHAR *value, DWORD count) {
    DWORD bytes = count * sizeof *value;
    return !RegGetValueW(HKEY_CURRENT_USER, key, name, RRF_RT_REG_SZ, NULL, value, &bytes);
}

static BOOL set(const WCHAR *key, const WCHAR *name, const WCHAR *value) {
    return !RegSetKeyValueW(HKEY_CURRENT_USER, key, name, REG_SZ, value, (DWORD)((wcslen(value) + 1) * sizeof *value));
}

static BOOL is_registered(void) {
    static WCHAR there[PATH];
    return value_of(COMMAND, NULL, there, PATH) && !wcscmp(command, there);
}

static BOOL registered(void) {
    return set(CLASSES, NULL, L"URL:AnonML invitation") && set(CLASSES, L"URL Protocol", L"")
           && set(CLASSES L"\\DefaultIcon", NULL, own) && set(COMMAND, NULL, command);
}

/* Removes what was registered for this very program, and nothing of another one's. */
static BOOL unregistered(void) { return !is_registered() || !RegDeleteTreeW(HKEY_CURRENT_USER, CLASSES); }

/* A newer version lies in another folder: links and starts at login that an older one wrote lead here from now on. */
static void take_over(void) {
    static WCHAR there[PATH], fresh[PATH];
    if (value_of(COMMAND, NULL, there, PATH) && wcsstr(there, L"\\" PROGRAM L"\" \"%1\"")) registered();
    if (!value_of(RUN, RUN_NAME, there, PATH)) return;
    WCHAR *program = wcsstr(there, L"\\" PROGRAM), *words = wcsstr(there, STAY);
    if (!program || !words || words - program > (int)COUNT(PROGRAM) + 1) return;
    _snwprintf(fresh, PATH, L"\"%ls\"%ls", own, words);
    if (wcslen(fresh) <= LONGEST_RUN_VALUE) set(RUN, RUN_NAME, fresh);
}

static DWORD WINAPI listen_to(void *given) {
    Task *task = given;
    char part[512];
    DWORD got;
    while (ReadFile(task->output, part, sizeof part, &got, NULL) && got) {
        if (task->size + got >= sizeof task->said) {
            memmove(task->said, task->said + sizeof part, task->size -= sizeof part);
        }
        memcpy(task->said + task->size, part, got);
        task->said[task->size += got] = 0;
        SendMessageW(window, SAID, 0, (LPARAM)task);
    }
    WaitForSingleObject(task->process, INFINITE);
    PostMessageW(window, ENDED, 0, (LPARAM)task);
    return 0;
}

/* `anonml WORDS`, whose output is listened to. NULL, and told, where it cannot be started. */
static Task *begin(const WCHAR *words) {
    static WCHAR program[PATH], line[2 * PATH];
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, NULL, TRUE};
    STARTUPINFOW how = {.cb = sizeof how, .dwFlags = STARTF_USESTDHANDLES};
    PROCESS_INFORMATION made;
    Task *task = calloc(1, sizeof *task);
    _snwprintf(program, PATH, L"%ls\\python\\python.exe", folder);
    _snwprintf(line, COUNT(line) - 1, L"\"%ls\" -u -X utf8 -m anonml %ls", program, words);
    if (!task || !CreatePipe(&task->output, &how.hStdOutput, &inherited, 0)) return free(task), NULL;
    SetHandleInformation(task->output, HANDLE_FLAG_INHERIT, 0);
    how.hStdError = how.hStdOutput;
    how.hStdInput = CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ, &inherited, OPEN_EXISTING, 0, 0);
    DWORD flags = CREATE_NO_WINDOW | CREATE_SUSPENDED;
    BOOL started = CreateProcessW(program, line, NULL, NULL, TRUE, flags, NULL, folder, &how, &made);
    CloseHandle(how.hStdOutput), CloseHandle(how.hStdInput);
    if (!started) {
        fail(UNPACKED);
        CloseHandle(task->output);
        free(task);
        return NULL;
    }
    AssignProcessToJobObject(job, task->process = made.hProcess);
    ResumeThread(made.hThread);
    CloseHandle(made.hThread), CloseHandle(CreateThread(NULL, 0, listen_to, task, 0, NULL));
    return task;
}

/* Ctrl-C to the peer, which ends in order; killed after a while, which it survives as well. */
static void stop(void) {
    if (!current) return;
    if (AttachConsole(GetProcessId(current->process))) {
        SetConsoleCtrlHandler(NULL, TRUE);
        GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0);
        FreeConsole();
    }
    if (WaitForSingleObject(current->process, ORDERLY_MS)) TerminateProcess(current->process, 1);
    SetConsoleCtrlHandler(NULL, FALSE);
    current->dismissed = TRUE;
    current = NULL, *page = 0;
}

static void open_in_browser(void) {
    page_wanted = FALSE;
    if ((INT_PTR)ShellExecuteW(NULL, L"open", page, NULL, NULL, SW_SHOWNORMAL) <= 32)
        fail(L"No browser was found.");
}

/* The page that is served, or a peer anew that serves one; `link` may be empty. */
static void open_page(const WCHAR *link) {
    static WCHAR words[LONGEST_LINK + 400];
    if (!*link && *page) open_in_browser();
    if (!*link && (*page || page_wanted)) return;
    stop();
    page_wanted = TRUE;
    _snwprintf(words, COUNT(words) - 1, L"peer open --no-browser %ls %ls", route, link);
    if (!(current = begin(words))) PostMessageW(window, WM_CLOSE, 0, 0);
}

/* The last whole line with an address of the page is the link that opens it next. */
static void read_said(Task *task) {
    char *found = NULL, *next = task->said;
    while ((next = strstr(next, PAGE)) && strpbrk(next, "\r\n")) found = next++;
    if (task != current || !found) return;
    int length = (int)strcspn(found, " \r\n");
    *page = 0;
    if (length < LONGEST_LINK) page[MultiByteToWideChar(CP_UTF8, 0, found, length, page, LONGEST_LINK - 1)] = 0;
    if (page_wanted && *page) open_in_browser();
}

static void end(Task *task) {
    WCHAR text[sizeof task->said];
    DWORD code = 1;
    GetExitCodeProcess(task->process, &code);
    if (code && !task->dismissed) {
        text[MultiByteToWideChar(CP_UTF8, 0, task->said, (int)task->size, text, COUNT(text) - 1)] = 0;
        fail(text);
    }
    if (task == current) PostMessageW(window, WM_CLOSE, 0, 0), current = NULL;
    CloseHandle(task->process), CloseHandle(task->output);
    free(task);
}

static BOOL starts_at_login(void) {
    WCHAR there[PATH / 8];
    return value_of(RUN, RUN_NAME, there, COUNT(there));
}

static void show_menu(void) {
    HMENU menu = CreatePopupMenu();
    POINT at;
    AppendMenuW(menu, MF_STRING, OPEN_PAGE, L"Open my page");
    AppendMenuW(menu, starts_at_login() ? MF_CHECKED : 0, AT_LOGIN, L"Start when I log in");
    AppendMenuW(menu, is_registered() ? MF_CHECKED : 0, LINKS, L"Open anonml:// links");
    AppendMenuW(menu, MF_STRING, QUIT, L"Quit");
    GetCursorPos(&at);
    SetForegroundWindow(window);
    TrackPopupMenu(menu, TPM_RIGHTBUTTON, at.x, at.y, 0, window, NULL);
    DestroyMenu(menu);
}

static BOOL notified(const WCHAR *sentence) {
    icon.uFlags = NIF_INFO;
    _snwprintf(icon.szInfo, COUNT(icon.szInfo) - 1, L"%ls", sentence);
    return Shell_NotifyIconW(NIM_MODIFY, &icon);
}

static void add_icon(void) {
    icon.hWnd = window;
    icon.hIcon = LoadIconW(GetModuleHandleW(NULL), MAKEINTRESOURCEW(1));
    icon.uFlags = NIF_ICON | NIF_TIP | NIF_MESSAGE;
    Shell_NotifyIconW(NIM_ADD, &icon);
}

/* Begins so, and has plain characters alone: none that ends a word of a command line. */
static BOOL is_plain(const WCHAR *text, const WCHAR *begin, size_t longest) {
    if (wcsncmp(text, begin, wcslen(begin)) || wcslen(text) >= longest) return FALSE;
    while (*text > L' ' && *text < 127 && !wcschr(L"\"\\^`<>|", *text)) text++;
    return !*text;
}

static BOOL is_link(const WCHAR *text) { return !*text || is_plain(text, L"anonml://", LONGEST_LINK); }

static BOOL given(const COPYDATASTRUCT *data) {
    const WCHAR *text = data->lpData;
    size_t count = data->cbData / sizeof *text;
    if (!count || text[count - 1]) return FALSE;
    if (data->dwData == A_NOTICE) return notified(text);
    if (data->dwData != A_LINK || !is_link(text)) return FALSE;
    open_page(text);
    return TRUE;
}

static LRESULT CALLBACK answer(HWND asked, UINT message, WPARAM word, LPARAM more) {
    static UINT taskbar;
    if (message == WM_CREATE) taskbar = RegisterWindowMessageW(L"TaskbarCreated");
    else if (message == taskbar) add_icon();
    else if (message == SAID) read_said((Task *)more);
    else if (message == ENDED) end((Task *)more);
    else if (message == WM_COPYDATA) return given((COPYDATASTRUCT *)more);
    else if (message == TRAY && (more == WM_LBUTTONUP || more == NIN_BALLOONUSERCLICK)) open_page(L"");
    else if (message == TRAY && more == WM_RBUTTONUP) show_menu();
    else if (message == WM_COMMAND && word == OPEN_PAGE) open_page(L"");
    else if (message == WM_COMMAND && word == AT_LOGIN)
        begin(starts_at_login() ? L"peer autostart off" : L"peer autostart on");
    else if (message == WM_COMMAND && word == LINKS) is_registered() ? unregistered() : registered();
    else if (message == WM_CLOSE || (message == WM_COMMAND && word == QUIT)) DestroyWindow(asked);
    else if (message == WM_ENDSESSION && word) stop();
    else if (message == WM_DESTROY) {
        stop();
        Shell_NotifyIconW(NIM_DELETE, &icon);
        PostQuitMessage(0);
    } else return DefWindowProcW(asked, message, word, more);
    return 0;
}

/* Hands over to the one that runs, which is waited for while it starts. */
static int hand_over(const WCHAR *link) {
    COPYDATASTRUCT data = {A_LINK, (DWORD)((wcslen(link) + 1) * sizeof *link), (void *)link};
    HWND other = NULL;
    for (int tries = 0; tries < 50 && !(other = FindWindowW(NAME, NAME)); tries++) Sleep(100);
    AllowSetForegroundWindow(ASFW_ANY);
    return !other || !SendMessageW(other, WM_COPYDATA, 0, (LPARAM)&data);
}

int WINAPI wWinMain(HINSTANCE instance, HINSTANCE before, WCHAR *line, int show) {
    int count;
    WCHAR **words = CommandLineToArgvW(GetCommandLineW(), &count), *last;
    (void)before, (void)show;
    if (!words || !GetModuleFileNameW(NULL, own, PATH - 64) || !(last = wcsrchr(wcscpy(folder, own), L'\\'))) return 1;
    *last = 0;
    _snwprintf(command, PATH, L"\"%ls\" \"%%1\"", own);
    if (count == 2 && !wcscmp(words[1], L"--register")) return !registered();
    if (count == 2 && !wcscmp(words[1], L"--unregister")) return !unregistered();
    if (count > 2 && !wcscmp(words[1], L"--route") && is_plain(words[2], L"socks://", COUNT(route) - 16)) {
        _snwprintf(route, COUNT(route) - 1, L"--route %ls", words[2]);
        words += 2, count -= 2;
    }
    BOOL stays = count > 4 && !wcscmp(words[1], L"peer") && !wcscmp(words[2], L"run") && !wcscmp(words[3], L"--stay");
    const WCHAR *link = count > 1 ? words[1] : L"";
    if (!stays && (count > 2 || !is_link(link))) return fail(NO_LINK);
    CreateMutexW(NULL, TRUE, L"Local\\" NAME);
    if (GetLastError() == ERROR_ALREADY_EXISTS) return stays ? 0 : hand_over(link);
    take_over();
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {.BasicLimitInformation.LimitFlags = ENDS_WITH_US};
    job = CreateJobObjectW(NULL, NULL);
    SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
    WNDCLASSW kind = {.lpfnWndProc = answer, .hInstance = instance, .lpszClassName = NAME};
    RegisterClassW(&kind);
    if (!(window = CreateWindowW(NAME, NAME, WS_OVERLAPPED, 0, 0, 0, 0, NULL, NULL, instance, NULL))) return 1;
    add_icon();
    if (!stays) open_page(link);
    else if (!(current = begin(line))) return 1;
    for (MSG message; GetMessageW(&message, NULL, 0, 0) > 0; DispatchMessageW(&message)) TranslateMessage(&message);
    return 0;
}
