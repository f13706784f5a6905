/* Another user of the machine: `stranger VERB PATH ...` tries each and prints Windows' number of the error, 0 where it
   was let in. Verbs: r reads a file or folder, w writes to a file, l lists a folder, n makes a file, d removes one. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

static DWORD opened(const WCHAR *path, DWORD access, DWORD way)
{
    HANDLE file = CreateFileW(path, access, 7, NULL, way, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) return GetLastError();
    CloseHandle(file);
    return 0;
}

static DWORD listed(const WCHAR *pattern)
{
    WIN32_FIND_DATAW found;
    HANDLE search = FindFirstFileW(pattern, &found);
    if (search == INVALID_HANDLE_VALUE) return GetLastError();
    FindClose(search);
    return 0;
}

int wmain(int count, WCHAR **words)
{
    char line[16];
    DWORD written;
    for (int i = 1; i + 1 < count; i += 2)
    {
        const WCHAR *path = words[i + 1];
        DWORD error = 87;
        if (*words[i] == 'r') error = opened(path, GENERIC_READ, OPEN_EXISTING);
        if (*words[i] == 'w') error = opened(path, GENERIC_WRITE, OPEN_EXISTING);
        if (*words[i] == 'n') error = opened(path, GENERIC_WRITE, CREATE_NEW);
        if (*words[i] == 'l') error = listed(path);
        if (*words[i] == 'd') error = DeleteFileW(path) ? 0 : GetLastError();
        sprintf(line, "%lu ", error);
        WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), line, (DWORD)strlen(line), &written, NULL);
    }
    return 0;
}
